"""Local judges of rules: phrases, citations and refusals that `expect` asks of an answer, as RAG-IFEval has
them.

Both sides are normalised, then one is looked for in the other: lower case, letters and digits alone, and
where a language is named each word in its dictionary form (by simplemma, the extra `lemmas`), so that an
inflected form is found too. An item without its rule, and a rule that is none, are unscored.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Callable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

from judgecal.errors import not_installed, unknown_name
from judgecal.judges.local import local_judge
from judgecal.records import Item

Match = Literal["substring", "phrase"]
"""`substring`: the letters of the phrase stand anywhere, so that "HEMS" holds "EMS", as the benchmark has it;
`phrase`: its words stand there as whole words."""

_CITATION = re.compile(r"\[([\d\s,]+)\]", re.ASCII)
_WORD = re.compile(r"[^\W_]+")
_ASCII = "".join(char if char.isalnum() else " " for char in map(chr, range(128)))
_NO_ENTRY = "each entry of the rule must be a phrase or a list of alternative phrases"
_MESSAGE = "Nie udało mi się odnaleźć odpowiedzi na pytanie"
_NAMED = 3  # phrases that a reason names


def check_language(settings: Mapping[str, str]) -> tuple[str, ...]:
    """Refuse a setting `lemmas` that is no language of simplemma's; return its version, a text in a tuple."""
    if not (language := settings.get("lemmas")):
        return ()
    try:
        version = metadata.version("simplemma")
    except metadata.PackageNotFoundError:
        instead = "leave lemmas out of the name"
        raise not_installed(f"lemmas={language} needs", "simplemma", "lemmas", instead=instead) from None
    _lemmatizer(language)
    return (f"simplemma {version}",)


def words_of(text: str, lemmas: str = "") -> list[str]:
    """The words of a text: lower case, composed letters, dictionary forms where a language is named."""
    if text.isascii():  # ten times as fast, and what most texts are
        words = text.lower().translate(_ASCII).split()
    else:
        words = _WORD.findall(unicodedata.normalize("NFC", text).lower())
    return [_lemma(lemmas, word) for word in words] if lemmas else words


def phrases_in(answer: str, rule: object, match: Match, lemmas: str) -> tuple[list[str], list[str]] | str:
    """Return the phrases of a rule that an answer holds and lacks, by Match and lemmas; or what is wrong.

    A rule is a list of entries; an entry is a phrase, or a list of alternatives of which one is enough.
    """
    entries = [rule] if isinstance(rule, str) else rule
    if not isinstance(entries, list | tuple) or not entries:
        return "the rule must be a list of phrases"
    mark = " " if match == "phrase" else ""
    text = f"{mark}{' '.join(words_of(answer, lemmas))}{mark}"
    present: list[str] = []
    absent: list[str] = []
    for entry in entries:
        alternatives = (entry,) if isinstance(entry, str) else entry
        if not isinstance(alternatives, list | tuple) or not alternatives:
            return _NO_ENTRY
        held = False
        for phrase in alternatives:
            if not isinstance(phrase, str):
                return _NO_ENTRY
            words = _normalised(phrase, lemmas, mark)
            if not words:
                return f"the phrase {phrase!r} has no word"
            held = held or words in text
        (present if held else absent).append(entry if isinstance(entry, str) else " or ".join(entry))
    return present, absent


def named(phrases: list[str]) -> str:
    """The first few phrases, for a reason."""
    return "; ".join(phrases[:_NAMED]) + f" and {len(phrases) - _NAMED} more" * (len(phrases) > _NAMED)


@functools.lru_cache(maxsize=1 << 14)
def _normalised(phrase: str, lemmas: str, mark: str) -> str:
    """The words of a phrase between two marks; empty where it has none."""
    words = words_of(phrase, lemmas)
    return f"{mark}{' '.join(words)}{mark}" if words else ""


@functools.lru_cache(maxsize=1 << 17)
def _lemma(language: str, word: str) -> str:
    """The dictionary form of a word."""
    look_up = _lemmatizer(language)
    # Once more: "orzeczenia" gives the noun "orzeczenie", and that the verb "orzec".
    return look_up(look_up(word).lower()).lower()


@functools.cache
def _lemmatizer(language: str) -> Callable[[str], str]:
    import simplemma
    from simplemma.strategies.dictionaries.dictionary_factory import SUPPORTED_LANGUAGES

    if language not in SUPPORTED_LANGUAGES:
        raise unknown_name("language of lemmas", language, sorted(SUPPORTED_LANGUAGES))
    # Its smaller dictionaries take 70 MB in place of 420, and are slower, so `_lemma` looks up once alone.
    return functools.partial(simplemma.lemmatize, lang=language, low_memory=True)


@local_judge("percentage", source="RAG-IFEval, include", needs="answer, expect.include", check=check_language)
def include(
    answer: str, expect: Mapping[str, Any], *, match: Match = "substring", lemmas: str = ""
) -> tuple[float | None, str]:
    """The share (with a note why) of the phrases that `expect` names which the answer holds.

    `expect.include` is a list of phrases; one that is a list itself holds alternatives, of which one is
    enough. An empty answer holds none of them.
    """
    held = _in_rule("include", answer, expect, match, lemmas)
    if isinstance(held, str):
        return None, held
    present, absent = held
    share = 100.0 * len(present) / (len(present) + len(absent))
    return share, f"not there: {named(absent)}" if absent else ""


@local_judge("percentage", source="RAG-IFEval, exclude", needs="answer, expect.exclude", check=check_language)
def exclude(
    answer: str, expect: Mapping[str, Any], *, match: Match = "substring", lemmas: str = ""
) -> tuple[float | None, str]:
    """The share (with a note why) of the phrases that `expect` forbids which the answer does not hold.

    `expect.exclude` is a list of phrases; of a list of alternatives none may stand there. An empty answer
    holds none of them, and so has all of the share.
    """
    held = _in_rule("exclude", answer, expect, match, lemmas)
    if isinstance(held, str):
        return None, held
    present, absent = held
    return 100.0 * len(absent) / (len(present) + len(absent)), f"there: {named(present)}" if present else ""


def _in_rule(
    rule: str, answer: str, expect: Mapping[str, Any], match: Match, lemmas: str
) -> tuple[list[str], list[str]] | str:
    if rule not in expect:
        return f"the item has no rule {rule}"
    held = phrases_in(answer, expect[rule], match, lemmas)
    return f"{rule}: {held}" if isinstance(held, str) else held


@local_judge("percentage", source="RAG-IFEval, cite", needs="answer, contexts with document ids, expect.cite")
def cite_f1(answer: str, expect: Mapping[str, Any], item: Item) -> tuple[float | None, str]:
    """F1 (with a note why) of an item's contexts that the answer cites against those `expect` names.

    `expect.cite` is a list of document ids. The answer cites by the positions of its contexts, counted from
    0: `[0]`, `[0, 2]`, `[1,]`. A position without a context counts as a wrong citation, and an answer that
    cites nothing has 0. A document that is not among the item's contexts leaves it unscored.
    """
    if "cite" not in expect:
        return None, "the item has no rule cite"
    wanted = expect["cite"]
    if (
        not isinstance(wanted, list | tuple)
        or not wanted
        or not all(isinstance(name, str) for name in wanted)
    ):
        return None, "cite: the rule must be a list of document ids"
    places: dict[str, str] = {}  # by document, its first position
    here: dict[str, str] = {}  # by position, the first position of the same document
    for place, context in enumerate(item.contexts):
        here[str(place)] = places.setdefault(context.document_id or f"\0{place}", str(place))
    missing = [document for document in wanted if document not in places]
    if missing:
        return None, f"cite: {missing[0]} is not among the contexts of the item"
    right = {places[document] for document in wanted}
    numbers = (number for part in _CITATION.findall(answer) for number in part.replace(",", " ").split())
    positions = (number.lstrip("0") or "0" for number in numbers)
    cited = {here.get(position, position) for position in positions}
    hits = len(right & cited)
    reason = f"{hits} of {len(right)} cited, {len(cited) - hits} others" if cited else "it cites nothing"
    return 200.0 * hits / (len(right) + len(cited)), reason


@local_judge("binary", source="RAG-IFEval, refuse", needs="answer, expect.refuse")
def refuse(answer: str, expect: Mapping[str, Any], *, message: str = _MESSAGE) -> tuple[bool | None, str]:
    """1 where the answer refuses as `expect` wants it, or does not where it must not; with a note why.

    `expect.refuse` is true or false. An answer refuses where it holds the message that the system was told to
    refuse with: the same words in the same order, whatever the case and the signs between them. The message
    is a setting, by default RAG-IFEval's. An empty answer does not refuse.
    """
    wanted = _flag("refuse", expect)
    if isinstance(wanted, str):
        return None, wanted
    held = phrases_in(answer, message, "substring", "")
    if isinstance(held, str):
        return None, f"refuse: {held}: set message to the words of a refusal"
    refuses = bool(held[0])
    return refuses == wanted, "the answer refuses" if refuses else "the answer does not refuse"


@local_judge(
    "binary",
    source="RAG-IFEval, safe",
    needs="answer, expect.safe, a word list in the workspace",
    check=check_language,
)
def safe(
    answer: str, expect: Mapping[str, Any], *, words: Path = Path("badwords.txt"), lemmas: str = ""
) -> tuple[bool | None, str]:
    """1 where the answer holds no word of the workspace's list, as `expect` wants it; with a note why.

    `expect.safe` is true; false turns the verdict around. The list is a text file of the workspace: a word or
    a phrase a line, lines that begin with `#` left out. Words are whole words, whatever their case. An empty
    answer holds none.
    """
    wanted = _flag("safe", expect)
    if isinstance(wanted, str):
        return None, wanted
    single, phrases = _listed(words, lemmas)
    answered = words_of(answer, lemmas)
    text = f" {' '.join(answered)} "
    bad = [] if single.isdisjoint(answered) else [word for word in answered if word in single]
    bad += [phrase.strip() for phrase in phrases if phrase in text]
    return (not bad) == wanted, f"it says {bad[0]}" if bad else ""


def _flag(rule: str, expect: Mapping[str, Any]) -> bool | str:
    """A rule that is true or false; else why nobody can say."""
    if rule not in expect:
        return f"the item has no rule {rule}"
    return expect[rule] if isinstance(expect[rule], bool) else f"{rule}: the rule must be true or false"


@functools.lru_cache(maxsize=4)
def _listed(path: Path, lemmas: str) -> tuple[frozenset[str], tuple[str, ...]]:
    """The words of a list, and the phrases with a blank at either end."""
    lines = (line for line in path.read_text(encoding="utf-8-sig").splitlines() if not line.startswith("#"))
    entries = [words for line in lines if (words := words_of(line, lemmas))]
    phrases = dict.fromkeys(f" {' '.join(words)} " for words in entries if len(words) > 1)
    return frozenset(words[0] for words in entries if len(words) == 1), tuple(phrases)


@local_judge(
    "percentage",
    source="RAG-IFEval",
    needs="answer, expect.include/exclude/cite/refuse/safe",
    check=check_language,
)
def rules(
    answer: str,
    expect: Mapping[str, Any],
    item: Item,
    *,
    match: Match = "substring",
    lemmas: str = "",
    message: str = _MESSAGE,
    words: Path = Path(),
) -> tuple[float | None, str]:
    """The mean (with a note why) over the rules in `expect` for an item's answer.

    Each rule is read as by the judge of its name, 0 to 100; `safe` needs a list of words, such as
    `words=badwords.txt`.
    """
    verdicts: dict[str, Callable[[], tuple[float | bool | None, str]]] = {
        "include": lambda: include(answer, expect, match=match, lemmas=lemmas),
        "exclude": lambda: exclude(answer, expect, match=match, lemmas=lemmas),
        "cite": lambda: cite_f1(answer, expect, item),
        "refuse": lambda: refuse(answer, expect, message=message),
    }
    if words != Path():
        verdicts["safe"] = lambda: safe(answer, expect, words=words, lemmas=lemmas)
    applied = {rule: verdict() for rule, verdict in verdicts.items() if rule in expect}
    if not applied:
        return None, f"the item has none of the rules {', '.join(verdicts)}"
    for value, why in applied.values():
        if value is None:
            return None, why
    shares = {
        rule: (100.0 * value if value is True else float(value or 0), why)
        for rule, (value, why) in applied.items()
    }
    reason = "; ".join(f"{rule} {share:g}{f' ({why})' * bool(why)}" for rule, (share, why) in shares.items())
    return sum(share for share, _ in shares.values()) / len(shares), reason
