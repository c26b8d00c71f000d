"""These take minutes: collected only where JUDGECAL_TORTURE is `full` or `quick` (`make torture`)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.torture.world import Launcher, World

LEVEL = os.environ.get("JUDGECAL_TORTURE", "")
if LEVEL not in ("full", "quick"):
    collect_ignore_glob = ["*.py"]


@pytest.fixture(scope="session")
def launcher() -> Iterator[Launcher]:
    """One process that forks all command lines of this worker."""
    found = Launcher()
    yield found
    found.close()


@pytest.fixture
def world(tmp_path: Path, launcher: Launcher) -> World:
    """An empty world; `make` fills it."""
    return World(tmp_path, launcher)
