"""Text to comparable pieces: tokens, numbers by value, names, negation, refusals; the words it knows.

English comes first (articles, number words, endings), but nothing here fails on another language: what is
not known is compared as it stands, without case and accents.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from rapidfuzz.distance import Levenshtein, Prefix


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
NEGATIONS = word_set(
    """not no never none nobody nothing neither nor without cannot false incorrect nicht kein keine keinen
    keinem keiner keines nie niemals nichts"""
)
YES = word_set("yes yeah yep yup true correct indeed")
NO = word_set("no nope false incorrect")
POLAR = word_set("""is are was were do does did can could will would has have had should may might must am
    isn aren don doesn didn""")
_SMALL_WORDS = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen
    fifteen sixteen seventeen eighteen nineteen"""
_ORDINAL_WORDS = "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth"
SMALL = {word: value for value, word in enumerate(_SMALL_WORDS.split())}
_TENS_WORDS = "twenty thirty forty fifty sixty seventy eighty ninety"
TENS = {word: 10 * value for value, word in enumerate(_TENS_WORDS.split(), start=2)}
ORDINALS = {word: value for value, word in enumerate(_ORDINAL_WORDS.split(), start=1)}
_VALUES: Mapping[str, float] = SMALL | ORDINALS | TENS
SCALES = {"hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12}
ROMAN = {"ii": 2, "iii": 3, "iv": 4, "vi": 6, "vii": 7, "viii": 8, "ix": 9, "xi": 11, "xii": 12}
_MONTHS = "january february march april june july august september october november december"
ALIASES = {month[:3]: month for month in _MONTHS.split()} | {
    "sept": "september", "usa": "unitedstates", "america": "unitedstates", "american": "unitedstates",
    "britain": "unitedkingdom", "british": "unitedkingdom", "uk": "unitedkingdom",
    "km": "kilometer", "kilometre": "kilometer", "kg": "kilogram", "cm": "centimeter", "mm": "millimeter",
    "metre": "meter", "ft": "foot", "feet": "foot", "lb": "pound", "lbs": "pound", "mi": "mile",
    "hr": "hour", "hrs": "hour", "min": "minute", "mins": "minute", "sec": "second", "yr": "year",
    "%": "percent", "st": "saint", "mt": "mount", "men": "man", "women": "woman", "children": "child",
    "people": "person", "went": "go", "made": "make", "got": "get", "grew": "grow", "colour": "color",
    "grey": "gray", "bigger": "big", "smaller": "small", "larger": "large", "heavier": "heavy",
    "longer": "long", "shorter": "short", "higher": "high", "lower": "low",
}  # fmt: skip
_COUNTRY = re.compile(
    r"\b(?:united (states)(?: of america)?|(?:united|great) (?:kingdom|britain))\b", re.IGNORECASE
)
ENDINGS = (
    ("ications", "y"), ("ication", "y"), ("ations", ""), ("ation", ""), ("ational", ""), ("ements", ""),
    ("ement", ""), ("ments", ""), ("ment", ""), ("iness", ""), ("ness", ""), ("ically", ""), ("ities", ""),
    ("ity", ""), ("ies", "y"), ("ied", "y"), ("ating", ""), ("ated", ""), ("ates", ""), ("ate", ""),
    ("ions", ""), ("ion", ""), ("ings", ""), ("ing", ""), ("edly", ""), ("ers", ""), ("er", ""),
    ("ed", ""), ("ly", ""), ("es", ""), ("s", ""), ("e", ""), ("y", ""),
)  # fmt: skip
_PAIRS = """open close,true false,increase decrease,high low,hot cold,large small,fast slow,allow forbid,
    allow prohibit,begin end,win lose,accept reject,alive dead,inside outside,always never,strong weak,
    positive negative,rise fall,include exclude,early late,legal illegal"""
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
MAX_SOURCE = 60_000
_MAX_SENTENCES = 400
# Without one of these nothing refuses; looking for them costs a fiftieth of the whole pattern.
_REFUSAL_CUES = word_set(
    "not n't unable unanswer unsure unknown idk dunno sorry insufficient n/a nicht keine brak"
) | {"no ", "as an ai", "nie wiem"}
# A refusal is said at once; the same words deep in a long answer are usually about a side matter.
_REFUSAL_WITHIN = 160

END = "\n"
_ENDS = ".!?\n"
_WORD = re.compile(
    r"(?:[^\W\d_]\.){2,}|[぀-ヿ㐀-鿿]|[^\W\d_]+"
    r"|\d{1,2}:\d{2}(?![\d:])|\d{1,3}(?:,\d{3})+(?:\.\d+)?(?!\d)|[1-9]\d{0,2}(?:\.\d{3})+(?![\d.])"
    r"|\d+(?:[sS][tT]|[nN][dD]|[rR][dD]|[tT][hH])\b|\d+(?:\.\d+)?|%|(?:[.!?][\"'”)]*\s|\n)\s*"
)
_ASCII_WORD = re.compile(
    "[A-Za-z]{2,}|" + _WORD.pattern.replace(r"[^\W\d_]", "[A-Za-z]").replace("[぀-ヿ㐀-鿿]|", ""), re.ASCII
)
_BREAK = re.compile(r"(?<=[.!?])[\"'”)]*\s+|\n+")
# where one statement ends and the next begins
CLAUSE = re.compile(
    r"[.;:,!?()\n–—]+(?:\s|$)|\s-\s|\b(?:but|because|although|though|while|whereas|which|who|that|and|or|so|if|when"
    r"|where|since|unless|until|aber|weil|obwohl|während|und|oder|wenn|dass|da)\b",
    re.IGNORECASE,
)
_NO_DENIAL = re.compile(r"\b(?:no|not) (?:later|less|more|fewer|longer|only|just)\b", re.IGNORECASE)
_POINT_THOUSANDS = re.compile(r"[1-9]\d{0,2}(?:\.\d{3})+")
_CLOCK = re.compile(r"\b(1[0-2]|0?[1-9])[:.]([0-5]\d) ?([ap])\.?m\b\.?", re.IGNORECASE)
_APOSTROPHES = str.maketrans("’‘ʼ`", "''''")
_SYMBOL = re.compile(r"[^\x00-\x7f\w]")
_NEGATED_VERB = re.compile(r"[nN]'[tT]\b")
_POSSESSIVE = re.compile(r"'(?:[sS]\b|(?<=[sS]')(?!\w))")


@dataclass(frozen=True)
class Text:
    """A text taken apart. `tokens` are stems, a number is `#` and its value; `words` are as written."""

    plain: str
    tokens: tuple[str, ...]
    words: tuple[str, ...]
    content: frozenset[str]
    numbers: frozenset[str]
    names: frozenset[str]
    negations: int
    refuses: bool
    polarity: int  # 1 starts with yes, -1 starts with no, 0 neither
    polar_question: bool

    @cached_property
    def joined(self) -> str:
        """The tokens as one text, without articles."""
        return " ".join([token for token in self.tokens if token not in ("the", "a", "an", "and")])

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
    def by_letter(self) -> Mapping[str, Sequence[str]]:
        """The longer words of the content by their first letters."""
        words: defaultdict[str, list[str]] = defaultdict(list)
        for token in self.in_order:
            if len(token) > 3:
                words[token[0]].append(token)
        return words

    @cached_property
    def clauses(self) -> Sequence[tuple[frozenset[str], bool]]:
        """The content of each statement, and whether it is denied."""
        clauses = []
        for part in CLAUSE.split(_NO_DENIAL.sub(" ", self.plain)):
            tokens = [token for token in read_tokens(part)[0] if token not in STOPWORDS]
            content = frozenset(tokens) - NEGATIONS
            if content:
                clauses.append((content, sum(token in NEGATIONS for token in tokens) % 2 == 1))
        return clauses


def strip_accents(text: str) -> str:
    """The text without combining marks, compatibility forms unified; case is kept."""
    if text.isascii():
        return text
    plain = unicodedata.normalize("NFKD", text)
    return "".join([char for char in plain if char < "\x80" or not unicodedata.combining(char)])


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


OPPOSITES: defaultdict[str, set[str]] = defaultdict(set)
"""Stem -> stems of words that deny it."""
for _pair in _PAIRS.split(","):
    _first, _second = map(stem, _pair.split())
    OPPOSITES[_first].add(_second)
    OPPOSITES[_second].add(_first)


def _plain_number(word: str) -> float | None:
    """The value of digits, an ordinal or a small Roman numeral as written; None for another word."""
    if word[0].isdigit():
        # 48.600 is a thousand times 48.6 in half of Europe; both texts of a pair are nearly always read alike
        whole = _POINT_THOUSANDS.fullmatch(word) is not None
        digits = word.replace(".", "") if whole else word
        digits = digits.replace(",", "").replace(":", "").rstrip("stndrhSTNDRH")
        # other scripts' digits are digits to \d as well, and float() reads decimal ones only
        return float(digits) if digits.replace(".", "", 1).isdecimal() else None
    return _VALUES.get(word.lower(), ROMAN.get(word.lower()) if word.isupper() else None)


def _read_number(words: Sequence[str], start: int) -> tuple[str, int] | None:
    """The token of the number at `start`, and the place after it: "twenty-five", "1.5 million", "3rd"."""
    value, end = _plain_number(words[start]), start + 1
    if value is None:
        return None
    if words[start].lower() in TENS and end < len(words):
        unit = words[end].lower()
        if 0 < SMALL.get(unit, 0) < 10 or unit in ORDINALS:
            value += _VALUES[unit]
            end += 1
    while end < len(words) and words[end].lower() in SCALES:
        value *= SCALES[words[end].lower()]
        end += 1
    return f"#{value:.12g}", end


NO_CONTENT = STOPWORDS | NEGATIONS
_NUMBER = ""  # the token of a word that may be a number, or a part of one
_REMEMBERED = 65536
_known_tokens: dict[str, str] = {}  # of words; looked up a dozen times as quickly as a cached function


def _word_token(word: str) -> str:
    lower = word.lower()
    if word[0].isdigit() or lower in _VALUES or (lower in ROMAN and word.isupper()):
        return _NUMBER
    return END if word[0] in _ENDS else _plain_token(word)


def _plain_token(word: str) -> str:
    lower = "usa" if word in ("US", "U.S.") else word.replace(".", "").lower()  # not the pronoun
    return lower if lower in STOPWORDS else stem(lower)


def read_tokens(text: str, most: int | None = None) -> tuple[list[str], list[str]]:
    """Cut a text into stems and numbers, `END` where a sentence ends, and beside each what was written."""
    plain = _plain(text)
    words = (_ASCII_WORD if plain.isascii() else _WORD).findall(plain)[:most]
    if len(_known_tokens) > _REMEMBERED:
        _known_tokens.clear()
    tokens = [_known_tokens.get(word) for word in words]
    if None in tokens:
        _known_tokens.update({word: _word_token(word) for word in set(words) - _known_tokens.keys()})
    known = [_known_tokens[word] for word in words]
    read, written, place = list[str](), list[str](), 0
    for start in [start for start, token in enumerate(known) if token is _NUMBER]:
        if start >= place:  # else a part of the number before it
            token, end = _read_number(words, start) or (_plain_token(words[start]), start + 1)
            read += [*known[place:start], token]
            written += [*words[place:start], " ".join(words[start:end])]
            place = end
    return read + known[place:], written + words[place:]


def _plain(text: str) -> str:
    """The text without accents and possessives; negated verbs, times, two countries in one way of writing."""
    plain = strip_accents(text).translate(_APOSTROPHES)
    if not plain.isascii():  # most texts become it: their words are found in half the time
        plain = _SYMBOL.sub(" ", plain)
    if "'" in plain:
        plain = _POSSESSIVE.sub("", _NEGATED_VERB.sub(" not", plain))
    if "m" in plain and ("." in plain or ":" in plain):
        plain = _CLOCK.sub(_clock, plain)
    lower = plain.lower()
    if "united " in lower or "great britain" in lower:
        plain = _COUNTRY.sub(lambda match: "Unitedstates" if match[1] else "Unitedkingdom", plain)
    return plain


def _clock(match: re.Match[str]) -> str:
    """A time with am or pm as the 24 hours have it."""
    hour = int(match.group(1)) % 12 + (12 if match.group(3) in "pP" else 0)
    return f"{hour}:{match.group(2)}"


def refuses(text: str) -> bool:
    """Whether a text begins as a refusal does."""
    head = text[:_REFUSAL_WITHIN].translate(_APOSTROPHES)
    cues = filter(head.lower().__contains__, _REFUSAL_CUES)  # faster than a generator over them
    return next(cues, None) is not None and REFUSAL.search(head) is not None


def take_apart(text: str) -> Text:
    """Take a text apart, its first 6,000 characters and 500 tokens; any string is accepted."""
    text = text[:MAX_CHARS]
    tokens, words = read_tokens(text, MAX_TOKENS)
    words = [word for token, word in zip(tokens, words, strict=True) if token is not END]
    tokens = [token for token in tokens if token is not END]
    content = frozenset(tokens) - NO_CONTENT
    first = words[0].lower() if words else ""
    return Text(
        plain=text,
        tokens=tuple(tokens),
        words=tuple(words),
        content=content or frozenset(tokens),
        numbers=frozenset([token for token in content if token[0] == "#"]),
        names=frozenset([t for t, w in zip(tokens, words, strict=True) if w[0].isupper() and t in content]),
        # a leading "No," answers the question; what follows may have no negation
        negations=sum(token in NEGATIONS for token in tokens[first in YES or first in NO :]),
        refuses=refuses(text),
        polarity=1 if first in YES else -1 if first in NO else 0,
        polar_question=first in POLAR,
    )


_cached = lru_cache(maxsize=2048)(take_apart)


def analyse(text: str) -> Text:
    """`take_apart`, once for a text that keeps coming back."""
    return _cached(text[:MAX_CHARS])  # cut first: the cache would hold on to the whole of a long text


def weight(token: str, named: bool) -> float:
    """A number or a name says more than a common word, a long word more than a short one."""
    return 2.0 if named or token[0] == "#" else 0.6 if len(token) < 4 else 1.0


def sentences(text: str) -> list[str]:
    """A text's sentences and lines, without blanks; at most its first 60,000 characters and 400 sentences."""
    parts = (part.strip() for part in _BREAK.split(text[:MAX_SOURCE]))
    return [part for part in parts if part][:_MAX_SENTENCES]


@lru_cache(maxsize=65536)
def closeness(a: str, b: str) -> float:
    """How far a stem can stand for another, 0..1: spellings, shared roots; numbers by value only."""
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
