"""`program.json`: a compiled program as DSPy saves it, with what judgecal must know to trust it again.

`dspy.Predict(signature).load(path)` reads it too: our part stands under a key of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dspy

from judgecal.errors import InputError
from judgecal.signatures import LoadedSignature
from judgecal.workspace import SCHEMA, check_schema

__all__ = ["ProgramFile", "load_program", "save_program"]

_OURS = "judgecal"


@dataclass(frozen=True, slots=True)
class ProgramFile:
    """A compiled program and the groups whose labels it has seen."""

    program: dspy.Predict
    trained_on: frozenset[str]


def save_program(
    path: Path, program: dspy.Predict, *, signature: LoadedSignature, trained_on: Iterable[str]
) -> None:
    """Write a program in DSPy's own JSON form, with the signature's fingerprint and the training groups."""
    draft = path.with_name(f".draft-{path.name}")
    program.save(str(draft))
    state = json.loads(draft.read_text(encoding="utf-8"))
    state["schema"] = SCHEMA
    state[_OURS] = {
        "signature": signature.name,
        "signature_fingerprint": signature.fingerprint,
        "trained_on": sorted(trained_on),
    }
    draft.write_text(json.dumps(state, indent=2) + "\n", encoding="ascii")
    draft.replace(path)


def load_program(path: Path, signature: LoadedSignature) -> ProgramFile:
    """Read a program back for the signature that it was compiled from.

    Raises:
        InputError: there is no program, it is no JSON of ours, or the signature has changed since.
    """
    state = _read_json(path)
    check_schema(state, str(path))
    ours = state.get(_OURS)
    if not isinstance(ours, dict) or not {"signature", "signature_fingerprint", "trained_on"} <= ours.keys():
        raise InputError(
            f"{path}: not written by judgecal: it does not say which signature it was compiled from"
        )
    if ours["signature_fingerprint"] != signature.fingerprint:
        raise InputError(
            f"{path}: compiled from signature {ours['signature']} with fingerprint "
            f"{ours['signature_fingerprint'][:8]}, and {signature.name} now has {signature.fingerprint[:8]}: "
            "run judgecal optimize again"
        )
    program = dspy.Predict(signature.cls)
    try:
        program.load(str(path))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(
            f"{path}: DSPy cannot load this program ({type(error).__name__}: {error})"
        ) from error
    return ProgramFile(program, frozenset(ours["trained_on"]))


def _read_json(path: Path) -> dict[str, Any]:
    try:
        state = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{path}: there is no compiled program here; judgecal optimize writes one") from None
    except ValueError as error:
        raise InputError(f"{path}: no JSON: {error}") from error
    if not isinstance(state, dict):
        raise InputError(f"{path}: a program is a JSON object")
    return state
