"""Text to comparable pieces: tokens, numbers by value, names, polarity, refusals; the words it knows.

English comes first (articles, number words, endings), but nothing here fails on another language: what is
not known is compared as it stands, without case and accents. All work is bounded by `MAX_CHARS` characters
and `MAX_TOKENS` tokens of a text.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import filterfalse
from typing import cast

from rapidfuzz.distance import Levenshtein, Prefix


def word_list(text: str) -> list[str]:
    """The words of a text."""
    return text.split()


def word_set(text: str) -> frozenset[str]:
    """The words of a text, without order."""
    return frozenset(text.split())


STOPWORDS = word_set(
    """a an the of in on at to for from by with and or as is are was were be been being am do does did done
    has have had having it its he she they them his her their this that these those there here which who
    whom whose what when where why how i you we me my your our us so if then than also into about over under
    after before because while during can could will would shall should may might must s t d ll re ve m just
    only very such same other some any each both more most per via up out off mr mrs ms dr sir"""
)
ARTICLES = word_set("a an the")
NEGATIONS = word_set("not no never none nobody nothing neither nor without cannot false incorrect")
YES = word_set("yes yeah yep yup true correct indeed")
NO = word_set("no nope false incorrect")
POLAR = word_set("""is are was were do does did can could will would has have had should may might must am
    isn aren don doesn didn""")
_SMALL_WORDS = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen
    fifteen
    sixteen seventeen eighteen nineteen"""
_TENS_WORDS = "twenty thirty forty fifty sixty seventy eighty ninety"
_ORDINAL_WORDS = "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth"
SMALL = {word: value for value, word in enumerate(word_list(_SMALL_WORDS))}
TENS = {word: 10 * value for value, word in enumerate(word_list(_TENS_WORDS), start=2)}
ORDINALS = {word: value for value, word in enumerate(word_list(_ORDINAL_WORDS), start=1)}
SCALES = {"hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12}
ROMAN = {"ii": 2, "iii": 3, "iv": 4, "vi": 6, "vii": 7, "viii": 8, "ix": 9, "xi": 11, "xii": 12}
MONTHS = word_list("january february march april june july august september october november december")
ALIASES = {month[:3]: month for month in MONTHS} | {
    "sept": "september", "usa": "unitedstates", "america": "unitedstates",
    "american": "unitedstates", "britain": "unitedkingdom", "british": "unitedkingdom",
    "uk": "unitedkingdom",
    "km": "kilometer", "kilometre": "kilometer", "kg": "kilogram", "cm": "centimeter", "mm": "millimeter",
    "metre": "meter", "ft": "foot", "feet": "foot", "lb": "pound", "lbs": "pound", "mi": "mile",
    "hr": "hour", "hrs": "hour", "min": "minute", "mins": "minute", "sec": "second", "yr": "year",
    "%": "percent", "st": "saint", "mt": "mount", "jr": "junior", "men": "man", "women": "woman",
    "children": "child", "people": "person", "went": "go", "made": "make", "got": "get", "grew": "grow",
    "colour": "color", "grey": "gray", "bigger": "big", "smaller": "small", "larger": "large",
    "heavier": "heavy", "longer": "long", "shorter": "short", "higher": "high", "lower": "low",
}  # fmt: skip
PHRASES = (
    ("united states", re.compile(r"\bunited states(?: of america)?\b", re.IGNORECASE), "Unitedstates"),
    ("united kingdom", re.compile(r"\bunited kingdom\b", re.IGNORECASE), "Unitedkingdom"),
    ("great britain", re.compile(r"\bgreat britain\b", re.IGNORECASE), "Unitedkingdom"),
)
ENDINGS = (
    ("ications", "y"), ("ication", "y"), ("ations", ""), ("ation", ""), ("ational", ""), ("ements", ""),
    ("ement", ""), ("ments", ""), ("ment", ""), ("iness", ""), ("ness", ""), ("ically", ""), ("ities", ""),
    ("ity", ""), ("ies", "y"), ("ied", "y"), ("ating", ""), ("ated", ""), ("ates", ""), ("ate", ""),
    ("ions", ""), ("ion", ""), ("ings", ""), ("ing", ""), ("edly", ""), ("ers", ""), ("er", ""),
    ("ed", ""), ("ly", ""), ("es", ""), ("s", ""), ("e", ""), ("y", ""),
)  # fmt: skip
_SOURCE = r"(?:document|context|text|passage|article|material|source|paper|page)s?"
REFUSAL = re.compile(
    rf"""\b(?:can(?:\ ?not|'t)|could(?:\ not|n't))\ be\ (?:answered|determined|verified|inferred|told
    |established)\b
    | \b(?:i|we)\ (?:can(?:\ ?not|'t)|could(?:\ not|n't)|(?:am|are|was|were)\ (?:unable|not\ able)\ to)
    \ (?:\w+\ )?
            (?:answer|find|determine|tell|provide|say|verify|confirm|help|locate)\b
    | \bunable\ to\ (?:answer|provide|find|determine|verify|confirm)\b
    | \b(?:i|we)\ (?:do(?:\ not|n't)|did(?:\ not|n't))\ (?:\w+\ )?
            (?:know|remember|recall|have\ (?:\w+\ )?(?:information|data|access|idea|knowledge))\b
    | \b{_SOURCE}\ (?:do(?:es)?|did)(?:\ not|n't)\ (?:\w+\ )?
            (?:mention|contain|state|say|specify|provide|include|give|answer|address|indicate|cover)\b
    | \b(?:(?:it|they)|(?:the|this|these)\ (?:\w+\ ){{1,4}}?)\ ?(?:do(?:es)?|did)(?:\ not|n't)\ (?:\w+\ )?
            (?:mention|state|say|specify|name|tell|indicate|disclose|reveal)\b
    | \b(?:gives?|has|have|contains?|provides?|states?|names?)\ no
            \ (?:figure|information|answer|mention|detail|date|number)s?\b
    | \bsays?\ nothing\b
    | \bnot\ (?:\w+\ )?(?:mentioned|stated|specified|provided|answerable)\b
    | \bnot\ (?:\w+\ )?(?:given|available|found|contained|included|covered|answered|present|described)
    \ (?:in|by)
            \ (?:the|this|these|that|any)\ (?:\w+\ )?{_SOURCE}\b
    | \bnot\ in\ (?:the|this|these)\ (?:\w+\ )?{_SOURCE}\b
    | \bno\ (?:\w+\ )?(?:information|answer|mention)\b
    | \b(?:i(?:'m|\ am)\ (?:not\ (?:sure|certain)|sorry|unsure)|no\ idea|unanswerable|idk|dunno|don't\ know)\b
    | \b(?:insufficient|not\ enough)\ (?:information|context|data)\b | \bas\ an\ ai\b
    | ^\W*(?:unknown|sorry|n/a|not\ sure)\b
    | \b(?:nicht\ im\ (?:dokument|text)|weiß\ (?:es\ |ich\ )?nicht|keine\ (?:angabe|ahnung|antwort))
    | \b(?:nie\ wiem|brak\ (?:informacji|odpowiedzi))\b""",
    re.IGNORECASE | re.VERBOSE,
)

MAX_CHARS = 6000
MAX_TOKENS = 500
_MAX_LONG = 60_000
_MAX_SENTENCES = 400
# Without one of these nothing refuses; looking for them costs a fiftieth of the whole pattern.
_REFUSAL_CUES = (
    *word_list("not n't unable unanswer unsure unknown idk dunno sorry insufficient n/a nicht keine brak"),
    "no ",
    "as an ai",
    "nie wiem",
)
# A refusal is said at once; the same words deep in a long answer are usually about a side matter.
_REFUSAL_WITHIN = 160

# Letters first, as most words begin with one; what stands between words is left at one look; without
# IGNORECASE, which takes twice as long.
_BETWEEN = r"(?![ ,'\"()-])"
_WORD = re.compile(
    rf"{_BETWEEN}(?:"
    r"(?:[^\W\d_]\.){2,}|[぀-ヿ㐀-鿿]|[^\W\d_]+"
    r"|\d{1,2}:\d{2}(?![\d:])|\d{1,3}(?:,\d{3})+(?:\.\d+)?(?!\d)|[1-9]\d{0,2}(?:\.\d{3})+(?![\d.])"
    r"|\d+(?:[sS][tT]|[nN][dD]|[rR][dD]|[tT][hH])\b|\d+(?:\.\d+)?|%)"
)
# The same with the ends of sentences, each a match that begins with one of `_ENDS`.
_WORD_OR_END = re.compile(rf"{_WORD.pattern[:-1]}|(?:[.!?][\"'”)]*\s|\n)\s*)")
_ASCII_WORD, _ASCII_WORD_OR_END = (
    re.compile(
        "[A-Za-z]{2,}|" + pattern.pattern.replace("[^\\W\\d_]", "[A-Za-z]").replace("[぀-ヿ㐀-鿿]|", ""),
        re.ASCII,
    )
    for pattern in (_WORD, _WORD_OR_END)
)
_ENDS = ".!?\n"
END = "\n"
_BREAK = re.compile(r"(?<=[.!?])[\"'”)]*\s+|\n+")
_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")
_MAY_BE_CLOCK = re.compile(r"[:.][0-5]\d ?[apAP]")
_CLOCK = re.compile(r"\b(1[0-2]|0?[1-9])[:.]([0-5]\d) ?([ap])\.?m\b\.?", re.IGNORECASE)
_POINT_THOUSANDS = re.compile(r"[1-9]\d{0,2}(?:\.\d{3})+")
_APOSTROPHES = str.maketrans({"’": "'", "‘": "'", "ʼ": "'", "`": "'"})
_SYMBOL = re.compile(r"[^\x00-\x7f\w]")
_NEGATED_VERB = re.compile(r"[nN]'[tT]\b")
_POSSESSIVE = re.compile(r"'(?:[sS]\b|(?<=[sS]')(?!\w))")


@dataclass(frozen=True)
class Text:
    """A text taken apart. `tokens` are stems, a number is `#` and its value; `words` are as written."""

    tokens: tuple[str, ...]
    words: tuple[str, ...]
    content: frozenset[str]
    numbers: frozenset[str]
    names: frozenset[str]
    joined: str
    negations: int
    refuses: bool
    polarity: int  # 1 starts with yes, -1 starts with no, 0 neither
    polar_question: bool

    @cached_property
    def grams(self) -> frozenset[str]:
        """Groups of three letters of the words that are no stopwords."""
        padded = f" {' '.join([token for token in self.tokens if token not in STOPWORDS])[:1500]} "
        return frozenset(map("".join, zip(padded, padded[1:], padded[2:], strict=False)))

    @cached_property
    def in_order(self) -> tuple[str, ...]:
        """The content, each token once: a set's own order differs from process to process."""
        return tuple([token for token in dict.fromkeys(self.tokens) if token in self.content])

    @cached_property
    def counts(self) -> Counter[str]:
        """How often each token stands in the text."""
        return Counter(self.tokens)

    @cached_property
    def by_letter(self) -> Mapping[str, Sequence[str]]:
        """The longer words of the content by their first letters."""
        words: defaultdict[str, list[str]] = defaultdict(list)
        for token in self.content:
            if len(token) > 3:
                words[token[0]].append(token)
        return words


def strip_accents(text: str) -> str:
    """The text without combining marks, compatibility forms unified; case is kept."""
    if text.isascii():
        return text
    return _NOT_ASCII.sub(_without_marks, unicodedata.normalize("NFKD", text))


def _without_marks(match: re.Match[str]) -> str:
    return "".join(char for char in match.group() if not unicodedata.combining(char))


@lru_cache(maxsize=16384)
def stem(word: str) -> str:
    """A light stem of a lower-case word: one known ending taken off where at least four letters stay.

    >>> stem("evaporated"), stem("evaporation"), stem("cities"), stem("was")
    ('evapor', 'evapor', 'city', 'was')
    """
    word = ALIASES.get(word, word)
    if len(word) < 4:
        return word
    for ending, other in ENDINGS:
        least = 3 if ending in ("s", "es", "ing", "ed", "e", "ies") else 4
        if word.endswith(ending) and len(word) - len(ending) >= least and not word.endswith("ss"):
            base = word[: -len(ending)] + other
            doubled = ending in ("ing", "ed", "er", "ers") and base[-1] == base[-2] and base[-1] not in "ls"
            base = base[:-1] if doubled else base
            return base[:-1] if base[-1] in "ey" and len(base) > 4 else base
    return word


def _plain_number(word: str) -> float | None:
    """The value of digits, an ordinal or a small Roman numeral as written; None for another word."""
    if word[0].isdigit():
        # 48.600 is a thousand times 48.6 in half of Europe; both texts of a pair are nearly always read alike
        whole = _POINT_THOUSANDS.fullmatch(word) is not None
        digits = word.replace(".", "") if whole else word
        digits = digits.replace(",", "").replace(":", "").rstrip("stndrhSTNDRH")
        # other scripts' digits are digits to \d as well, and float() reads decimal ones only
        return float(digits) if digits.replace(".", "", 1).isdecimal() else None
    lower = word.lower()
    value = SMALL.get(lower, ORDINALS.get(lower, ROMAN.get(lower) if word.isupper() else None))
    return None if value is None else float(value)


def _read_number(words: list[str], start: int) -> tuple[str, int] | None:
    """The token of the number at `start`, and the place after it: "twenty-five", "1.5 million", "3rd"."""
    lower = words[start].lower()
    end = start + 1
    if lower in TENS:
        value = float(TENS[lower])
        unit = words[end].lower() if end < len(words) else ""
        if 0 < SMALL.get(unit, 0) < 10 or unit in ORDINALS:
            value += SMALL.get(unit) or ORDINALS[unit]
            end += 1
    else:
        plain = _plain_number(words[start])
        if plain is None:
            return None
        value = plain
    while end < len(words) and words[end].lower() in SCALES:
        value *= SCALES[words[end].lower()]
        end += 1
    return f"#{value:.12g}", end


_NO_CONTENT = STOPWORDS | NEGATIONS
_NUMBER = ""  # the token of a word that may be a number, or a part of one
_REMEMBERED = 65536
_known_tokens: dict[str, str] = {}  # of words; looked up a dozen times as quickly as a cached function


def _word_token(word: str) -> str:
    lower = word.lower()
    if word[0].isdigit() or lower in SMALL or lower in ORDINALS or lower in TENS:
        return _NUMBER
    if lower in ROMAN and word.isupper():
        return _NUMBER
    return END if word[0] in _ENDS else _plain_token(word)


def _plain_token(word: str) -> str:
    lower = word.replace(".", "").lower()
    if word in ("US", "U.S."):  # not the pronoun
        lower = "usa"
    return lower if lower in STOPWORDS else stem(lower)


def _tokens(words: list[str]) -> tuple[list[str], list[str]]:
    """Stems and numbers in order, and beside each what was written."""
    found = list(map(_known_tokens.get, words))
    if None in found:
        if len(_known_tokens) > _REMEMBERED:
            _known_tokens.clear()
        _known_tokens.update({word: _word_token(word) for word in set(words) if word not in _known_tokens})
        found = list(map(_known_tokens.get, words))
    tokens = cast("list[str]", found)
    if _NUMBER not in tokens:
        return tokens, words
    longer: list[tuple[int, int]] = []
    start = 0
    for place in [place for place, token in enumerate(tokens) if token is _NUMBER]:
        if place < start:  # part of the number before
            continue
        number = _read_number(words, place)
        token, start = (_plain_token(words[place]), place + 1) if number is None else number
        tokens[place] = token
        if start > place + 1:
            longer.append((place, start))
    for place, after in reversed(longer):
        tokens[place:after] = tokens[place : place + 1]
        words[place:after] = [" ".join(words[place:after])]
    return tokens, words


def _clock(match: re.Match[str]) -> str:
    """A time with am or pm as the 24 hours have it."""
    hour = int(match.group(1)) % 12 + (12 if match.group(3) in "pP" else 0)
    return f"{hour}:{match.group(2)}"


def _words(text: str) -> list[str]:
    plain = _plain(text)
    return (_ASCII_WORD if plain.isascii() else _WORD).findall(plain)[:MAX_TOKENS]


def _plain(text: str) -> str:
    """The text without accents and possessives; negated verbs, times, two countries in one way of writing."""
    plain = strip_accents(text)
    for char in "’‘ʼ`":
        plain = plain.replace(char, "'")
    if not plain.isascii():  # most texts become it: their words are found in half the time
        plain = _SYMBOL.sub(" ", plain)
    if "'" in plain:
        negated = _NEGATED_VERB.sub(" not", plain) if "'t" in plain or "'T" in plain else plain
        plain = _POSSESSIVE.sub("", negated)
    if _MAY_BE_CLOCK.search(plain):
        plain = _CLOCK.sub(_clock, plain)
    lower = plain.lower()
    for cue, pattern, short in PHRASES:
        if cue in lower:
            plain = pattern.sub(short, plain)
    return plain


def analyse(text: str) -> Text:
    """Take a text apart, once for a text that keeps coming back; any string is accepted.

    Only the first `MAX_CHARS` characters and `MAX_TOKENS` tokens count.
    """
    # cut first: the cache would hold on to the whole of a long text
    return _cached(text[:MAX_CHARS])


def refuses(text: str) -> bool:
    """Whether a text begins as a refusal does."""
    head = text[:_REFUSAL_WITHIN].translate(_APOSTROPHES)
    cues = filter(head.lower().__contains__, _REFUSAL_CUES)  # faster than a generator over them
    return next(cues, None) is not None and REFUSAL.search(head) is not None


def take_apart(text: str) -> Text:
    """The same without the cache, for texts that are read once."""
    text = text[:MAX_CHARS]
    words = _words(text)
    tokens, written = _tokens(words)
    content = frozenset([t for t in tokens if t not in _NO_CONTENT])
    first = words[0].lower() if words else ""
    return Text(
        tokens=tuple(tokens),
        words=tuple(written),
        content=content or frozenset(tokens),
        numbers=frozenset([t for t in content if t[0] == "#"]),
        names=frozenset([t for t, w in zip(tokens, written, strict=True) if w[0].isupper() and t in content]),
        joined=" ".join([t for t in tokens if t not in ("the", "a", "an", "and")]),
        # a leading "No," answers the question; what follows may have no negation
        negations=len([t for t in tokens[first in YES or first in NO :] if t in NEGATIONS]),
        refuses=refuses(text),
        polarity=1 if first in YES else -1 if first in NO else 0,
        polar_question=first in POLAR,
    )


_cached = lru_cache(maxsize=2048)(take_apart)


def sentences(text: str) -> list[str]:
    """A text's sentences and lines, without blanks; at most its first 60,000 characters and 400 sentences."""
    parts = (part.strip() for part in _BREAK.split(text[:_MAX_LONG]))
    return [part for part in parts if part][:_MAX_SENTENCES]


def content_tokens(text: str) -> tuple[list[str], Iterator[str]]:
    """A text's content tokens in order, `END` where a sentence ends; beside each what was written."""
    plain = _plain(text[:_MAX_LONG])
    tokens, words = _tokens((_ASCII_WORD_OR_END if plain.isascii() else _WORD_OR_END).findall(plain))
    no_content = _NO_CONTENT.__contains__
    written = (word for token, word in zip(tokens, words, strict=True) if not no_content(token))
    return list(filterfalse(no_content, tokens)), written


def content_words(text: str) -> Mapping[str, str]:
    """A text's content tokens in order, each with the word as first written; cached as `analyse` is.

    >>> content_words("The ferry to Holm runs twice.")
    {'ferry': 'ferry', 'holm': 'Holm', 'run': 'runs', 'twic': 'twice'}
    """
    return _cached_words(text[:MAX_CHARS])


@lru_cache(maxsize=2048)
def _cached_words(text: str) -> Mapping[str, str]:
    words: dict[str, str] = {}
    for token, word in zip(*_tokens(_words(text)), strict=True):
        if token not in _NO_CONTENT:
            words.setdefault(token, word)
    return words


@lru_cache(maxsize=65536)
def closeness(a: str, b: str) -> float:
    """How far two stems can stand for each other, 0..1: spellings, shared roots; numbers by value only."""
    if a == b:
        return 1.0
    shorter, longer = sorted((a, b), key=len)
    if len(shorter) < 4 or a[0] == "#" or b[0] == "#":
        return 0.0
    shared = Prefix.similarity(a, b)
    if shared >= 4 and shared / len(longer) >= 0.6:
        return 0.5 + 0.5 * shared / len(longer)
    if longer.endswith(shorter) or len(longer) > 2 * len(shorter):
        return 0.5 if longer.endswith(shorter) else 0.0
    limit = 1 if len(longer) < 7 else 2
    if shared == 0 and a[-1] != b[-1]:
        return 0.0
    return 0.8 if Levenshtein.distance(a, b, score_cutoff=limit) <= limit else 0.0
