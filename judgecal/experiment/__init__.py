"""Experiments: configuration -> trials -> results."""
