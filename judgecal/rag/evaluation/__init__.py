"""Whole systems: what answers questions, sweeps over its settings, and what the answers come to."""
