"""What every command prints and writes, as files to compare with: the net under large moves.

A world is a workspace and the commands that are run in it one after another. Masked are times, paths and
dates, so that two runs give the same files; a number of a result, a decision or a message is never masked.
"""

from __future__ import annotations

import calendar
import contextlib
import hashlib
import importlib
import io
import json
import os
import re
import shlex
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from judgecal.cli import run
from judgecal.experiment.folder import VERDICTS
from judgecal.experiment.judgements import read_verdicts
from judgecal.judges import function
from judgecal.records import digest as digest_of
from tests.support.command import ROOT, fresh_workspace
from tests.support.exports import write_golden
from tests.support.pages import items_of

GOLDEN = ROOT / "tests" / "golden" / "commands"
_FORMS = {"full": ("--full",), "md": ("--format", "md"), "json": ("--json",)}
_MASKED_KEYS = frozenset(
    {"code", "lock_sha256", "latency_s", "p50_s", "p95_s", "ttft_s", "queries_per_minute", "at"}
)
_MASKS = (
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|\+00:00)?"), "<when>"),
    (re.compile(rf"\d{{4}}-\d\d-\d\d|\b\d{{1,2}} ({'|'.join(calendar.month_name[1:])}) \d{{4}}\b"), "<day>"),
    (re.compile(r"(?<![\w.])[\d.,]+ ?(ms|s|seconds?|minutes?|hours?|days?)\b(?! a)"), "<time>"),
    (re.compile(r"(?<![\w.])[\d.,]+(/s| a second| per minute)"), "<rate>"),
    (re.compile(r"\b(lock|code)([:= \"]+)[0-9a-f]{12,64}"), r"\1\2<sha>"),
    (re.compile(r"\b(sha256|sha)([:= ]+)[0-9a-f]{8,64}"), r"\1\2<sha>"),
    (re.compile(r"(?<=[a-z]-)[0-9a-f]{8}\b"), "<hash>"),
    (re.compile(r"stored in\s+(<here>/\S+)\s+\((.*?)\)\s+and"), r"stored in \1 (\2) and"),  # as it wraps
    (re.compile(r"[ \t]{2,}"), "  "),
    (re.compile(r"[-\u2500\u2501]{3,}"), "---"),
)


def masked(text: str, folder: Path) -> str:
    """A printed text without what differs from run to run."""
    for place in {str(folder.resolve()), str(folder)}:
        text = text.replace(place, "<here>")
    text = text.replace(str(ROOT), "<checkout>")
    for pattern, instead in _MASKS:
        text = pattern.sub(instead, text)
    return "\n".join(line.rstrip() for line in text.splitlines()) + "\n" if text else ""


def plain(value: Any, folder: Path) -> Any:
    """JSON without times, with floats of six digits."""
    if isinstance(value, dict):
        return {
            key: "<masked>" if key in _MASKED_KEYS else plain(part, folder) for key, part in value.items()
        }
    if isinstance(value, list):
        return [plain(part, folder) for part in value]
    if isinstance(value, float):
        return float(f"{round(value, 12):.6g}") + 0.0  # below that it is the machine's rounding
    return masked(value, folder).rstrip("\n") if isinstance(value, str) else value


def as_lines(value: Any, folder: Path) -> str:
    """JSON that a diff can be read of: estimates on one line each."""
    text = json.dumps(plain(value, folder), indent=1, ensure_ascii=False)
    flat = re.sub(r"\{\n\s+\"value\":[^{}]*\}", lambda found: re.sub(r"\s*\n\s*", " ", found[0]), text)
    return flat + "\n"


class _Outline(HTMLParser):
    """The elements and texts of a page, a line each, without style, script and the points of curves."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.lines: list[str] = []
        self._left_out = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("style", "script"):
            self._left_out += 1
        kept = [
            f"{name}={value}"
            for name, value in attrs
            if name in ("class", "id", "href", "aria-label", "open")
        ]
        if tag not in ("path", "line", "circle", "rect", "polyline", "polygon", "use", "meta", "link", "col"):
            self.lines.append(f"<{' '.join([tag, *kept])}>")

    def handle_endtag(self, tag: str) -> None:
        self._left_out -= tag in ("style", "script")

    def handle_data(self, data: str) -> None:
        if not self._left_out and data.strip():
            self.lines.append(" ".join(data.split()))


def outline(page: str, folder: Path) -> str:
    """A page as lines, with what its explorer carries."""
    parsed = _Outline()
    parsed.feed(page)
    parsed.close()
    carried = items_of(page) if 'type="application/octet-stream" id="items"' in page else None
    text = masked("\n".join(parsed.lines), folder)
    return text + ("" if carried is None else f"\nexplorer: {digest(as_lines(carried, folder))}\n")


def digest(text: str) -> str:
    """The beginning of a long text, with the hash of all of it."""
    head = text if len(text) <= 1500 else f"{text[:1500]}\n... {len(text):,} characters"
    return f"{head}\nhash {hashlib.sha256(text.encode()).hexdigest()[:16]}"


@dataclass(frozen=True)
class World:
    """A workspace and what is run in it; `report:NAME` prints an experiment in all forms."""

    setup: Callable[[Path], None]
    lines: tuple[str, ...]

    def play(self, folder: Path) -> Iterator[tuple[str, str]]:
        """(file name, text) of each command and each artefact."""
        fresh_workspace(folder)
        self.setup(folder)
        home, environment = Path.cwd(), {"COLUMNS": "100", "JUDGECAL_CACHE_DIR": str(folder / ".cache")}
        os.chdir(folder)
        try:
            # Latencies are read from this clock alone, and a local judge's fingerprint is its name's: neither a
            # busy machine nor another line of its source is ever the news of a diff.
            with (
                mock.patch.dict(os.environ, environment),
                mock.patch("time.perf_counter", lambda: 0.0),
                mock.patch.object(function, "digest", _named_digest),
            ):
                for name in [name for name in os.environ if name.upper().endswith("_API_KEY")]:
                    del os.environ[name]  # `models` says which keys are there
                for n, line in enumerate(self.lines, 1):
                    yield from _played(n, line, folder)
        finally:
            os.chdir(home)


def _named_digest(parts: list[Any]) -> str:
    """The digest of a local judge by its name and settings, without its source; of other parts as it is."""
    settings = parts[-1] if isinstance(parts[-1], dict) else {}
    return digest_of([parts[0], settings] if parts[0] in function.local_rules() else parts)


def _played(n: int, line: str, folder: Path) -> Iterator[tuple[str, str]]:
    if not line.startswith("report:"):
        words = shlex.split(line)
        texts = [_called(words, folder)]
        if not {"--json", "--dry-run", "--name"} & set(words):  # of an experiment the report's form is kept
            texts.append(_called([*words, "--json"], folder))
        yield (
            f"{n:02} {re.sub(r'[^a-z0-9]+', ' ', ' '.join(words[:2]).lower()).strip()}.txt",
            "\n".join(texts),
        )
        return
    slug = line.removeprefix("report:")
    texts = [_called(["report", slug, *form], folder) for form in _FORMS.values()]
    _called(["report", slug, "--format", "html"], folder)
    page = folder / "experiments" / slug / "report.html"
    yield f"{n:02} report {slug}.txt", "\n".join(texts)
    yield f"{n:02} report {slug}.page.txt", outline(page.read_text(encoding="utf-8"), folder)
    yield f"{n:02} report {slug}.files.txt", files_of(folder / "experiments" / slug, folder)


def _called(words: list[str], folder: Path) -> str:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(words)
    printed = out.getvalue()
    if "--json" in words and printed.startswith("{"):
        printed = as_lines(json.loads(printed), folder)
    said = masked(err.getvalue(), folder)
    tail = f"stderr:\n{said}" if said else ""
    return f"$ judgecal {masked(shlex.join(words), folder)}exit {code}\n{masked(printed, folder)}{tail}"


def files_of(experiment: Path, folder: Path) -> str:
    """The artefacts of an experiment: TOML and JSON whole, journals by their first row and the hash of
    all."""
    parts = []
    for path in sorted(experiment.rglob("*")):
        name = path.relative_to(experiment).as_posix()
        if path.suffix == ".jsonl" or path.name == VERDICTS:
            if path.name == VERDICTS:
                rows = [_journal_row(row.as_json()) for row in read_verdicts(path)]
            else:
                rows = [_journal_row(json.loads(line)) for line in path.read_text("utf-8").splitlines()]
            lines = sorted(
                json.dumps(plain(row, folder), ensure_ascii=False) for row in rows
            )  # written in any order
            parts.append(f"== {name}: {len(rows)} rows\n{digest(chr(10).join(lines))}")
        elif path.suffix == ".json":
            parts.append(
                f"== {name}\n{digest(as_lines(json.loads(path.read_text(encoding='utf-8')), folder))}"
            )
        elif path.suffix in (".toml", ".csv"):
            parts.append(f"== {name}\n{digest(masked(path.read_text(encoding='utf-8'), folder))}")
        elif path.is_file():
            parts.append(f"== {name}")
    return "\n".join(parts) + "\n"


def _journal_row(row: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key not in ("attempts", "cached")}


# --- the worlds


def _nothing(folder: Path) -> None:
    """The starter alone."""


def _many_raters(folder: Path) -> None:
    """Four people on 40 questions of three answers, a scale of 1 to 5, ties and labels that nobody could
    give."""
    rng = np.random.default_rng(4)
    rows = ["question,answer,reference,ann,bob,cid,dee"]
    for question in range(40):
        for answer in range(3):
            quality = float(rng.uniform(1, 5))
            labels = [str(int(np.clip(round(quality + rng.normal(0, 0.6)), 1, 5))) for _ in range(4)]
            if (question + answer) % 7 == 0:
                labels[3] = ""
            words = "very " * int(quality)
            rows.append(
                f"question {question}?,answer {answer} is {words}good,it is good "
                f"{question},{','.join(labels)}"
            )
    (folder / "many.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")


def _recorded(folder: Path) -> None:
    """Recorded verdicts of three judges on 120 questions: two alike, one a coin, one that fails on some."""
    rng = np.random.default_rng(7)
    labels = ["question,answer,reference,person"]
    judged = ["item_id,judge,verdict"]
    for n in range(120):
        right = bool(rng.random() < 0.7)
        labels.append(f"question {n}?,answer {n},reference {n},{'yes' if right else 'no'}")
        good = 80 if right else 30
        verdicts: dict[str, object] = {
            "careful": int(np.clip(good + rng.normal(0, 18), 0, 100)),
            "hasty": int(np.clip(good + rng.normal(0, 30), 0, 100)),
            "coin": int(rng.integers(0, 101)),
        }
        if n % 11 == 0:
            verdicts["hasty"] = ""
        judged += [f"rec-{n + 1:05},{judge},{verdict}" for judge, verdict in verdicts.items()]
    (folder / "labels.csv").write_text("\n".join(labels) + "\n", encoding="utf-8")
    (folder / "judged.csv").write_text("\n".join(judged) + "\n", encoding="utf-8")


_SWEEP = """
[questions]
gold = "starter"
split = "all"
limit = 24
[judges]
suite = "rag"
model = "embedded"
local = ["token_f1@local"]
[[systems]]
name = "ours"
kind = "local"
[sweep.ours]
top_n = [1, 3]
"""


def _sweep(folder: Path) -> None:
    (folder / "sweep.toml").write_text(_SWEEP, encoding="utf-8")


def _production(folder: Path) -> None:
    rng = np.random.default_rng(9)
    rows, labels = ["q,a,r,sys"], ["item_id,person"]
    for n in range(60):
        right = rng.random() < 0.7
        rows.append(
            f"when does ferry {n} run?,{'At nine' if right else 'At noon'} from pier {n}.,At nine.,s{n % 2}"
        )
        labels.append(f"{n},{'yes' if right else 'no'}")
    (folder / "answers.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")


_REFUSALS = (GOLDEN.parent / "refused_commands.txt").read_text(encoding="utf-8").splitlines()

WORLDS: dict[str, World] = {
    "starter": World(
        _nothing,
        (
            "models",
            "judges",
            "judges correctness_v3",
            "gold check",
            "gold check starter",
            "score --signatures correctness_v1,correctness_v3 --name two --dry-run",
            "score --signatures correctness_v1,correctness_v3 --name two",
            "report:two",
            "compare two --name compared",
            "report:compared",
            "select two -o judge.lock.json --allow-below-floor --name chosen",
            "report:chosen",
            "optimize --optimizer fewshot --limit 60 --name better",
            "report:better",
            "retrieval --name found",
            "report:found",
            "answer --signatures answer_v1 --limit 20 --name told",
            "report:told",
        ),
    ),
    "raters": World(
        _many_raters,
        (
            "gold import many.csv --as many "
            "--label ann --label bob --label cid --label dee --scale ordinal:1:5 --replace",
            "gold check many",
            "gold sheet many -o sheet.csv --raters 2 --replace",
            "gold label many --adjudicate --dry-run",
            "score --gold many --judge token_f1@local --judge correctness_v3@embedded --name many",
            "report:many",
            "select many --name taken",
            "report:taken",
        ),
    ),
    "recorded": World(
        _recorded,
        (
            "gold import labels.csv --as rec --label person --scale binary --replace",
            "agreement --gold rec --judgements judged.csv --name held",
            "report:held",
            "compare held --name apart",
            "report:apart",
            "select held --name taken",
            "report:taken",
            "report --all",
        ),
    ),
    "sweep": World(
        _sweep,
        ("evaluate sweep.toml --name swept --dry-run", "evaluate sweep.toml --name swept", "report:swept"),
    ),
    "locks": World(
        _production,
        (
            "score --judge correctness_v3@embedded --name base",
            "select base -o judge.lock.json --allow-below-floor --replace --name locked",
            "gate --lock judge.lock.json --name gated",
            "report:gated",
            "migrate --lock judge.lock.json --to rag/correctness@embedded --name moved",
            "report:moved",
            "judge answers.csv --lock judge.lock.json -o judged.csv --col question=q --col answer=a --col reference=r "
            "--replace --name judged",
            "report:judged",
            "judge answers.csv --suite rag -o suite.csv --col question=q --col answer=a --col reference=r --replace "
            "--name suite",
            "report:suite",
            "rate judged.csv --lock judge.lock.json --name rated",
            "report:rated",
        ),
    ),
    "refusals": World(_sweep, tuple(_REFUSALS)),
}


def write(world: str, folder: Path) -> dict[str, str]:
    """The files of a world."""
    return dict(WORLDS[world].play(folder))


def main() -> None:
    """Write all of them anew."""
    for world in WORLDS:
        shutil.rmtree(GOLDEN / world, ignore_errors=True)
        (GOLDEN / world).mkdir(parents=True)
        with tempfile.TemporaryDirectory() as folder:
            for name, text in write(world, Path(folder) / "workspace").items():
                (GOLDEN / world / name).write_text(text, encoding="utf-8")
    write_golden()
    for module in ("tests.test_pinned_numbers", "tests.test_small_worlds"):
        importlib.import_module(module).write_all()


if __name__ == "__main__":
    main()
