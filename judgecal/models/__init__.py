"""Models: aliases and prices, and the embedded one."""

from judgecal.models.catalogue import (
    ALIASES,
    EMBEDDED,
    Catalogue,
    ModelSpec,
    for_task,
    load_catalogue,
    with_version,
)
from judgecal.models.providers import PROVIDERS, shown_address

__all__ = [
    "ALIASES", "EMBEDDED", "PROVIDERS", "Catalogue", "ModelSpec", "for_task", "load_catalogue",
    "shown_address", "with_version",
]  # fmt: skip
