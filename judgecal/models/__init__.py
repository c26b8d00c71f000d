"""Models: aliases and prices, and the embedded one."""

from judgecal.models.catalogue import ALIASES, EMBEDDED, Catalogue, ModelSpec, load_catalogue

__all__ = ["ALIASES", "EMBEDDED", "Catalogue", "ModelSpec", "load_catalogue"]
