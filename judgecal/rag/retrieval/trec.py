"""Files of the retrieval world: qrels, and runs of a retriever of the user's own."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from judgecal.errors import refuse
from judgecal.tables import decode, json_lines, read_bytes
from judgecal.workspace import shown

_JSON_LINES = (".jsonl", ".ndjson")
_RUN_FORM = "question Q0 document rank score tag"
_QRELS_FORM = "question 0 document relevance"


@dataclass(frozen=True, slots=True)
class Run:
    """The rankings of a retriever: question id to document ids, best first, and to their scores where there
    are any."""

    name: str
    sha256: str
    ranked: dict[str, list[str]]
    scores: dict[str, list[float]]


def read_qrels(path: Path) -> dict[str, dict[str, int]]:
    """Relevance by question and document.

    Lines are `question 0 document relevance` (TREC), or `question document relevance` under a header (BEIR).

    Raises:
        InputError: every line that is none of these, and every document judged twice with different outcomes.
    """
    found: dict[str, dict[str, int]] = {}
    problems: list[str] = []
    for line, parts in _lines(path, problems):
        if line == 1 and not _is_whole(parts[-1]):
            continue  # a header
        if len(parts) not in (3, 4) or not _is_whole(parts[-1]):
            problems.append(f"{shown(path)}:{line}: not `{_QRELS_FORM}` with a whole number: mend the line")
            continue
        judged = found.setdefault(parts[0], {})
        if judged.setdefault(parts[-2], int(parts[-1])) != int(parts[-1]):
            problems.append(
                f"{shown(path)}:{line}: {parts[-2]} is judged {judged[parts[-2]]} for question {parts[0]} already: "
                "keep one line"
            )
    if not found and not problems:
        problems.append(f"{shown(path)}:1: the file holds no judgement: each line is `{_QRELS_FORM}`")
    refuse(problems)
    return found


def read_run(path: Path) -> Run:
    """Rankings: JSON lines of `{"question_id": ..., "ranked": [ids]}` (.jsonl, .ndjson), else TREC's six
    columns.

    TREC's are put into order by score, ties by document id from z to a, scores in single precision and the
    rank column of no account: as trec_eval reads them, so that its numbers are ours.

    Raises:
        InputError: every line that is no ranking, and every document that a question has twice.
    """
    data = read_bytes(path)
    sha = hashlib.sha256(data).hexdigest()
    problems: list[str] = []
    scores: dict[str, list[float]] = {}
    if path.suffix.lower() in _JSON_LINES:
        ranked = _read_json(data, shown(path), problems)
    else:
        ranked, scores = _read_trec(path, problems)
    if not ranked and not problems:
        problems.append(f"{shown(path)}:1: the file holds no ranking")
    refuse(problems)
    return Run(path.name, sha, ranked, scores)


def _lines(path: Path, problems: list[str]) -> Iterator[tuple[int, list[str]]]:
    """Each line that is not blank, cut at white space."""
    text, wrong = decode(read_bytes(path), shown(path))
    problems.extend(wrong)
    for line, source in enumerate(text.split("\n"), start=1):
        parts = source.split()
        if parts:
            yield line, parts


def _is_whole(text: str) -> bool:
    return text.removeprefix("-").isdecimal()


def _read_trec(path: Path, problems: list[str]) -> tuple[dict[str, list[str]], dict[str, list[float]]]:
    rows: dict[str, dict[str, float]] = {}
    for line, parts in _lines(path, problems):
        score = _score(parts[4]) if len(parts) == 6 else None
        if score is None:
            problems.append(
                f"{shown(path)}:{line}: not `{_RUN_FORM}`: mend the line (name a file of JSON lines .jsonl)"
            )
            continue
        found = rows.setdefault(parts[0], {})
        if parts[2] in found:
            problems.append(
                f"{shown(path)}:{line}: question {parts[0]} has document {parts[2]} twice: keep one line"
            )
        found[parts[2]] = score
    ranked, scores = {}, {}
    for question, found in rows.items():
        ranked[question] = sorted(sorted(found, reverse=True), key=found.__getitem__, reverse=True)
        scores[question] = [found[name] for name in ranked[question]]
    return ranked, scores


def _score(text: str) -> float | None:
    try:
        value = float(np.float32(text))
    except ValueError:
        return None
    return None if np.isnan(value) else value


def _read_json(data: bytes, where: str, problems: list[str]) -> dict[str, list[str]]:
    text, wrong = decode(data, where)
    lines = json_lines(text, where)
    problems.extend([*wrong, *lines.problems])
    found: dict[str, list[str]] = {}
    for line, row in lines.rows:
        name, ids = row.get("question_id"), row.get("ranked")
        if not (
            isinstance(name, str | int)
            and isinstance(ids, list)
            and all(type(one) in (str, int) for one in ids)
        ):
            problems.append(f'{where}:{line}: not {{"question_id": id, "ranked": [ids]}}: mend the line')
            continue
        ranked = [str(one) for one in ids]
        if len(set(ranked)) < len(ranked):
            twice = next(one for place, one in enumerate(ranked) if one in ranked[:place])
            problems.append(f"{where}:{line}: document {twice} is ranked twice: keep one")
        elif found.setdefault(str(name), ranked) is not ranked:
            problems.append(f"{where}:{line}: question {name} stands there already: keep one line")
    return found
