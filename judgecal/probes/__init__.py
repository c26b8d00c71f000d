"""Probes: answers made by rules, whose right verdict, or the direction in which it must move, is known."""

from judgecal.probes.family import FAMILIES_BY_KIND, Family, LeftOut, Probe, families, make_probes

__all__ = ["FAMILIES_BY_KIND", "Family", "LeftOut", "Probe", "families", "make_probes"]
