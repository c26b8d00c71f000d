"""What the embedded model reaches, zero-shot, on public human-labelled data that it was never fitted on.

    python tests/benchmarks/embedded_targets.py ../shared/data

1. NQ301: kappa of correctness_v3@embedded with the people's final label.
2. SemEval 2013 task 7, SciEntsBank, with its own marking conventions: the area under the ROC curve.

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
    "gold import {data}/nq301/items.csv --as nq301 --col item=item_id --col group=group --col question=question "
    "--col reference=reference_answer --reference-separator ' | ' --col answer=answer --label annotator1 --label "
    "annotator2 --label annotator3 --col gold=acceptable --scale binary",
    "score --gold nq301 --split all --json",
)
_SCIENTSBANK = (
    "gold import {data}/semeval2013/scientsbank_train.csv --as scientsbank --col item=item_id --col group=group "
    "--col question=question --col reference=reference_answer --col answer=answer --col gold=label --label label "
    "--map correct=yes --map contradictory=no --map incorrect=no --scale binary",
    "score --gold scientsbank --split all --json",
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
            met = [
                _target("kappa", 0.58, _last(_NQ301, data)),
                _target("auc", 0.75, _last(_SCIENTSBANK, data)),
            ]
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


def _target(metric: str, least: float, result: dict[str, Any]) -> bool:
    judge = result["judges"][0]
    found = judge["agreement"][metric]
    met = bool(found["value"] >= least)
    ends = f"[{found['low']:.3f}, {found['high']:.3f}]"
    counts = f"n {judge['n']}/{judge['n_expected']}, {judge['n_unscored']} unscored"
    told = f"{metric} {found['value']:.3f} {ends}, {counts}; target {least:g}: {'met' if met else 'MISSED'}"
    print(f"  {told}\n  run: {result['run_line']}")
    return met


if __name__ == "__main__":
    sys.exit(main())
