"""Probes: answers made by rules, whose right verdict, or the direction in which it must move, is known."""
