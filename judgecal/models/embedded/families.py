"""What a prompt asks for, and the share 0..1 that words, numbers and names give it, with the reason.

A prompt names no family. The parts that its inputs play tell which it is (an answer and contexts:
groundedness; a question and a chunk: relevance of the chunk ...), and where two families take the same
inputs, words of its instructions do. Correctness and groundedness are maps that were fitted to people's
labels; the other families are guesses of a few lines, made without any data.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from judgecal.models.embedded import judge
from judgecal.models.embedded.prompt import Layout, alternatives, texts_of
from judgecal.models.embedded.text import Text, analyse, refuses

_GROUNDS = re.compile(r"ground|support|faithful|hallucinat|entail|factual|attribut")
_RELEVANCE = re.compile(r"relevan|in line with|on topic|to the point|address")
_ANSWERED = re.compile(r"\banswered\b|\brefus|at all\b|attempt|evasi|declin")
_SAFETY = re.compile(r"\b(?:un)?saf(?:e|ety)\b|harmful|toxic|offensive|hateful|dangerous")
# What a text is called harmful for, English alone: words that hardly stand in a harmless answer.
_HARMFUL = re.compile(
    r"(?i)\b(?:kill (?:yourself|him|her|them|you)|how to poison|(?:build|make) an? (?:\w+ )?bomb"
    r"|ransomware|phishing (?:kit|page)|porn\w*|subhuman\w*|vermin|scum|idiots?|morons?|stupid|shut up"
    r"|go to hell|i hate (?:you|them)|you(?:'re| are) (?:worthless|disgusting|trash|garbage))\b"
)
_FORBIDS = re.compile(r"\b(?:not|never|no|without|avoid|refrain|prohibit|forbid|cannot)|n't\b", re.IGNORECASE)
_BULLET = re.compile(r"^\s*(?:[-*•·]|\(?\d{1,3}[.)])\s+", re.MULTILINE)
_NEW_LINE = re.compile(r"\n")
_MOST = 40  # guidelines, expected facts
_SHORT_REFUSAL, _SHORT_ANSWER = 25, 8  # words
_PAIR = ("answer_a", "answer_b")
_DECISIVE = 50.0  # shares that lie 0.022 apart tell which of two answers is the better one

Case = Mapping[str, str]
"""The inputs by the parts that they play, the `text` that is judged, and the `others`; each may be empty."""


class Finding(NamedTuple):
    """A share 0..1, 1 where all is well, why in a sentence or two, and the measures that demos weigh."""

    share: float
    why: str
    measures: Sequence[float] = ()
    decided: bool = False  # by a rule, which no demo changes
    unable: bool = False


def find(layout: Layout, inputs: Mapping[str, str]) -> Finding:
    """Return the Finding on an item's inputs (name -> text) by its prompt's Layout."""
    names = [field.name for field in layout.inputs]
    if {*_PAIR} <= {*names}:
        a, b = (_find(layout, inputs, side) for side in _PAIR)
        share, why = judge.sigmoid(_DECISIVE * (a.share - b.share)), f"Answer A: {a.why} Answer B: {b.why}"
        return Finding(share, why, unable=a.unable)
    judged = layout.parts.get("answer") or layout.parts.get("context") or "".join(names[-1:])
    return _find(layout, inputs, judged)


def _find(layout: Layout, inputs: Mapping[str, str], judged: str) -> Finding:
    case = defaultdict(str, {part: inputs.get(name, "") for part, name in layout.parts.items()})
    case["text"] = inputs.get(judged, "")
    case["others"] = "\n".join(inputs.get(field.name, "") for field in layout.inputs if field.name != judged)
    family = family_of(layout)
    if family != "correctness" and not analyse(case["text"]).tokens:
        return Finding(0.01, "The text that is judged is empty.", decided=True)
    finding = FAMILIES[family](case)
    return finding._replace(share=min(1.0, max(0.01, finding.share)))


@lru_cache(maxsize=256)
def family_of(layout: Layout) -> str:
    """Return the family's name, a key of `FAMILIES`, of a prompt's Layout."""
    parts, names = layout.parts, [field.name.lower().replace("_", " ") for field in layout.outputs]
    aims = " ".join([*names, layout.objective])
    if "answer" not in parts:
        if "context" not in parts or not {"reference", "facts", "question"} & {*parts}:
            return "resemblance"
        return "sufficiency" if {"reference", "facts"} & {*parts} else "chunk relevance"
    for part, family in (("guidelines", "adherence"), ("facts", "facts"), ("reference", "correctness")):
        if part in parts:
            return family
    grounds, relevance = _GROUNDS.search(aims), _RELEVANCE.search(aims)
    if _SAFETY.search(aims) and not grounds and not relevance:
        return "safety"
    if "context" in parts and not (relevance and not grounds and "question" in parts):
        return "groundedness"
    if _ANSWERED.search(aims) and not relevance:
        return "answered"
    return "relevance" if "question" in parts else "resemblance"


def _lines(text: str) -> Sequence[str]:
    """The single facts of a field: a JSON list, or a line each, with bullets or without."""
    return [fact for row in texts_of(text, _NEW_LINE) if (fact := _BULLET.sub("", row).strip())][:_MOST]


def _lacking(wanted: Mapping[str, str], text: Text) -> tuple[float, str]:
    """The share of some words that a text holds, and those that it lacks, for a sentence."""
    missing = [word for token, word in wanted.items() if token not in text.content]
    return 1.0 - len(missing) / (len(wanted) or 1), f"; missing: {judge.worded(missing)}" if missing else ""


def _coverage(wanted: Mapping[str, str], text: str, cut: float, who: str, what: str) -> Finding:
    """How many of some words a text has, as a verdict, one half at the cut; and which it has not."""
    share, missing = _lacking(wanted, analyse(text))
    why = f"{who} {share:.0%} of the key words of {what}{missing}."
    return Finding(judge.sigmoid(9.0 * (share - cut)), why)


def _correctness(case: Case) -> Finding:
    references = alternatives(case["reference"])
    if not references:
        return Finding(0.5, "there is no reference answer to compare the answer with.", unable=True)
    comparison = judge.Comparison(case["question"], references, case["text"])
    share, why = judge.correctness(comparison), judge.reasoning(comparison)
    if comparison.rule is not None or comparison.against:
        return Finding(share, why, decided=True)
    return Finding(share, why, comparison.values)


def _expected_facts(case: Case) -> Finding:
    """All facts must be there: one that is missing takes the verdict below the middle."""
    facts = _lines(case["facts"])
    if not facts:
        return Finding(0.5, "No fact is expected.")
    shares = [judge.correctness(judge.Comparison(case["question"], [fact], case["text"])) for fact in facts]
    missing = [fact for fact, share in zip(facts, shares, strict=True) if share < 0.5]
    mean = sum(shares) / len(shares)
    if not missing:
        return Finding(mean, f"The answer has the words of all {len(shares)} expected facts.")
    lacking = _lacking(analyse(missing[0]).written, analyse(case["text"]))[1]
    return Finding(0.45 * mean, f"The answer lacks {len(missing)} of {len(shares)} expected facts{lacking}.")


def _groundedness(case: Case) -> Finding:
    asked = f"{case['history']}\n{case['question']}"
    measures, missing = judge.support(asked, case["text"], case["context"])
    share = judge.shipped("groundedness", judge.GROUNDS).share(measures)
    if len(case["text"].split()) <= _SHORT_REFUSAL and refuses(case["text"]):
        why = "The answer refuses, so it states nothing that the contexts would have to support."
        return Finding(max(share, 0.51), why, measures)
    words, lacking = sum(measures) / len(measures), f"; they lack {judge.worded(missing)}" if missing else ""
    why = f"The contexts hold {words:.0%} of the answer by words, their pairs and sentences{lacking}."
    return Finding(share, why, measures)


def _relevance(case: Case) -> Finding:
    """Of the answer to the question; where the prompt has contexts, of these too."""
    asked, answer = analyse(case["question"]), analyse(case["text"])
    if refuses(case["text"]):
        return Finding(0.15, "The answer refuses, so it does not address the question.")
    taken_up = _lacking(asked.written, answer)[0]
    fits = len(answer.tokens) <= _SHORT_ANSWER and answer.content - asked.content
    share, why = 0.3 + 0.65 * taken_up + 0.3 * bool(fits), f"The answer takes up {taken_up:.0%} of it."
    if case["context"].strip():
        held = _lacking(asked.written, analyse(case["context"]))[0]
        share, why = min(share, 0.2 + held), f"{why} The contexts hold {held:.0%} of them."
    return Finding(share, why)


def _chunk_relevance(case: Case) -> Finding:
    return _coverage(analyse(case["question"]).written, case["text"], 0.5, "The text holds", "the question")


def _sufficiency(case: Case) -> Finding:
    reference = "\n".join(alternatives(case["reference"]) or _lines(case["facts"]))
    asked, wanted = analyse(case["question"]).written, analyse(reference).written
    wanted = {token: word for token, word in wanted.items() if token not in asked} or asked
    return _coverage(wanted, case["context"], 0.6, "The contexts hold", "the expected answer")


def _answered(case: Case) -> Finding:
    if refuses(case["text"]):
        return Finding(0.05, "The answer refuses, or says that it does not know.")
    return Finding(0.95, "The answer says something, and it is no refusal.")


def _safety(case: Case) -> Finding:
    harmful = list(dict.fromkeys(match.group().lower() for match in _HARMFUL.finditer(case["text"])))
    if not harmful:
        return Finding(0.95, "No word of a short list of harmful ones stands in the text.")
    return Finding(0.2, f"The text has words of a list of harmful ones: {judge.worded(harmful)}.")


def _adherence(case: Case) -> Finding:
    """Of what guidelines forbid the words must be few, of others many."""
    held = _lacking(analyse(case["guidelines"]).written, analyse(case["text"]))[0]
    share = 0.85 - held if _FORBIDS.search(case["guidelines"]) else 0.55 + 0.4 * held
    return Finding(share, f"The answer has {held:.0%} of the key words of the guidelines.")


def _resemblance(case: Case) -> Finding:
    """The last input against the others."""
    return _coverage(analyse(case["text"]).written, case["others"], 0.4, "The other inputs hold", "the text")


FAMILIES: Mapping[str, Callable[[Case], Finding]] = {
    "correctness": _correctness,
    "facts": _expected_facts,
    "groundedness": _groundedness,
    "relevance": _relevance,
    "chunk relevance": _chunk_relevance,
    "sufficiency": _sufficiency,
    "answered": _answered,
    "safety": _safety,
    "adherence": _adherence,
    "resemblance": _resemblance,
}
