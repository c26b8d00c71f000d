"""Right answers with one fact changed, so that they must fall: a number, a negation.

The fact must be what is asked for: it stands in the reference and not in the question.
"""

from __future__ import annotations

import random
import re

from judgecal.models.embedded.text import analyse, sentences
from judgecal.probes.family import Family, NoProbe, Sources, language_of, right_answers
from judgecal.records import Item

# a number that stands alone: no part of a date in digits, a time, a range, a version, an ordinal or a word
_NUMBER = re.compile(r"(?<![\w.,:/–-])\d[\d,]*(?:\.\d+)?(?![\w:/–-]|[.,]\d)")
_YEAR = re.compile(r"(?:1\d|20)\d\d")
_ASKS_NUMBER = re.compile(
    r"(?i)\bwhen\b|\bhow (?:many|much|old|long|far|tall|high|big|large|fast|often|deep|wide|late|early)\b"
    r"|\b(?:what|which) (?:\w+ )?(?:year|date|day|number|percentage|percent|age|price|time|share|amount)\b"
    r"|\bwann\b|\bwie ?(?:viel|viele|alt|lang|lange|hoch|groß|weit|oft)\b|\bkiedy\b|\bile\b"
)
_ASKS_YEAR = re.compile(r"(?i)\b(?:year|jahr|roku)\b")
_FEW = 3  # words of a reference that is little but its number
_AUXILIARY = re.compile(r"\b(?:is|are|was|were|can|could|will|would|must|should)\b(?!['’])")
_NOT = re.compile(r" not\b|(?<=[esd])n't\b")
# whatever makes it unsure what a negation denies: a second clause, a quantifier, a hedge, a second negation
_UNSURE = re.compile(
    r"(?i)\b(?:who|whom|which|that|when|where|while|because|as|if|unless|until|although|though|and|or|but|so|what|how"
    r"|all|every|each|any|some|most|many|few|only|both|either|neither|no|none|nobody|nothing|never|without|hardly"
    r"|may|might|yes|than|yet|ever|just|also|even|more|less|the (?!answer)\w{3,}er)\b|[,;:()?\"“”]"
)


def _other_digits(number: str, rng: random.Random) -> str:
    """Off by more than a tenth; a year by a decade or more, what may be a day of a month within one."""
    if number.isdigit() and 10 <= int(number) <= 31:
        return str(rng.choice([value for value in range(10, 29) if abs(value - int(number)) > 3]))
    at = 2 if _YEAR.fullmatch(number) else 0
    near = int(number[at])
    digits = [digit for digit in range(0 if at else 1, 10) if abs(digit - near) > 1]
    return f"{number[:at]}{rng.choice(digits)}{number[at + 1 :]}"


def _number(item: Item, _sources: Sources, rng: random.Random) -> str:
    references, answer = right_answers(item), item.answer
    few = all(len(text.split()) <= _FEW for text in references)
    if not few and not _ASKS_NUMBER.search(item.question):
        raise NoProbe("a number may not be what is asked for")
    given, year = analyse(answer), _ASKS_YEAR.search(item.question)
    question_numbers, meant = analyse(item.question).numbers, [analyse(text).numbers for text in references]
    for number in dict.fromkeys(_NUMBER.findall(answer)):
        value = next(iter(analyse(number).numbers), "")
        same = re.compile(rf"(?<![\w.,]){re.escape(number)}(?![\w]|[.,]\d)")
        sure = len(same.findall(answer)) == given.tokens.count(value) and all(
            value in numbers for numbers in meant
        )
        if sure and value not in question_numbers and not (year and not _YEAR.fullmatch(number)):
            changed = _other_digits(number, rng)
            if not analyse(changed).numbers & (question_numbers | given.numbers).union(*meant):
                return same.sub(changed, answer)
    raise NoProbe("the answer has no number that every reference has and the question has not")


def _negation(item: Item, _sources: Sources, _rng: random.Random) -> str:
    right_answers(item)
    text = item.answer.strip()
    if len(sentences(text)) != 1 or not 4 <= len(text.split()) <= 25 or analyse(text).polarity:
        raise NoProbe("the answer is not one plain sentence")
    if language_of(item) != "en":
        raise NoProbe("the rule knows English alone")
    negations, verbs = _NOT.findall(text), list(_AUXILIARY.finditer(_NOT.sub("", text)))
    if _UNSURE.search(text) or len(verbs) != 1 or verbs[0].start() == 0 or len(negations) > 1:
        raise NoProbe("it is not sure what a negation would deny")
    return _NOT.sub("", text) if negations else f"{text[: verbs[0].end()]} not{text[verbs[0].end() :]}"


FAMILIES = (
    Family("number_changed", "falls", "changed numbers", _number),
    Family("negation", "falls", "negations", _negation),
)
