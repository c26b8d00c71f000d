"""Models: aliases and prices, and the embedded one."""

from judgecal.models.catalogue import ALIASES, EMBEDDED, PROVIDERS, Catalogue, ModelSpec, load_catalogue, with_version

__all__ = ["ALIASES", "EMBEDDED", "PROVIDERS", "Catalogue", "ModelSpec", "load_catalogue", "with_version"]
