"""What the embedded model reaches on public human-labelled data: the two targets that the README quotes.

    python tests/benchmarks/embedded_targets.py ../shared/data

1. NQ301, never trained on: kappa of correctness_v3@embedded, zero-shot, with the people's final label.
2. SemEval 2013 task 7, SciEntsBank, with its own marking conventions: what `optimize` gains on the sealed
test split.

Each is printed with the judgecal command that makes it, which anyone can run.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shlex
import sys
import tempfile
from pathlib import Path
from typing import Any

from judgecal.cli import run

_NQ301 = (
    "gold import {data}/nq301/items.csv --as nq301 --item item_id --group group --question question "
    "--reference reference_answer --reference-separator ' | ' --answer answer --label annotator1 --label "
    "annotator2 --label annotator3 --gold-label acceptable --scale binary",
    "score --gold nq301 --split all --json",
)
_SCIENTSBANK = (
    "gold import {data}/semeval2013/scientsbank_train.csv --as scientsbank --item item_id --group group "
    "--question question --reference reference_answer --answer answer --gold-label label --label label "
    "--map correct=yes --map contradictory=no --map incorrect=no --scale binary",
    "optimize --gold scientsbank --json",
)


def main() -> int:
    """Run both and print a line a target; exit 1 where one is missed."""
    if len(sys.argv) != 2 or not (Path(sys.argv[1]) / "nq301").is_dir():
        print(f"usage: {sys.argv[0]} DATA, the folder that holds nq301/ and semeval2013/")
        return 2
    data = Path(sys.argv[1]).resolve()
    home = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        try:
            _judgecal(f"init {folder}/ws", data)
            os.chdir(Path(folder) / "ws")
            met = [_zero_shot(_last(_NQ301, data)), _in_context(_last(_SCIENTSBANK, data))]
        finally:
            os.chdir(home)
    return 0 if all(met) else 1


def _last(commands: tuple[str, ...], data: Path) -> dict[str, Any]:
    outputs = [_judgecal(command, data) for command in commands]
    result: dict[str, Any] = json.loads(outputs[-1])
    return result


def _judgecal(command: str, data: Path) -> str:
    print(f"$ judgecal {command.format(data='DATA')}")
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()) as err:
        code = run(shlex.split(command.format(data=data)))
    if code:
        raise SystemExit(f"exit {code}: {err.getvalue()}")
    return out.getvalue()


def _zero_shot(result: dict[str, Any]) -> bool:
    judge = result["judges"][0]
    kappa = judge["agreement"]["kappa"]
    counts = f"n {judge['n']}/{judge['n_expected']}, {judge['n_unscored']} unscored"
    return _told(f"kappa {_shown(kappa)}, {counts}", "0.58", kappa["value"] >= 0.58, result)


def _in_context(result: dict[str, Any]) -> bool:
    test = result["test"]
    gain, ends = test["difference"], [test[side]["macro_agreement"]["value"] for side in ("before", "after")]
    text = (
        f"macro_agreement {ends[0]:.3f} -> {ends[1]:.3f}, gain {_shown(gain, '+')}, "
        f"once recalibrated {_shown(test['difference_recalibrated'], '+')}, n "
        f"{gain['n']}/{gain['n_expected']}, {gain['n_unscored']} unscored, {gain['n_groups']} questions: "
        f"{result['decision']}"
    )
    return _told(text, "+0.02, clear of zero", gain["value"] >= 0.02 and gain["low"] > 0, result)


def _shown(found: dict[str, Any], sign: str = "") -> str:
    return f"{found['value']:{sign}.3f} [{found['low']:{sign}.3f}, {found['high']:{sign}.3f}]"


def _told(text: str, target: str, met: bool, result: dict[str, Any]) -> bool:
    print(f"  {text}; target {target}: {'met' if met else 'MISSED'}\n  run: {result['run_line']}")
    return met


if __name__ == "__main__":
    sys.exit(main())
