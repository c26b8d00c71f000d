"""Text to comparable pieces: tokens, numbers by value, names, negation, refusals; the words it knows.

English comes first (small words, number words, endings), but nothing here fails on another language: what is
not known is compared as it stands, without case and accents, by its first six letters.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import cached_property, lru_cache
from itertools import compress


def word_set(text: str) -> frozenset[str]:
    """Return the frozenset of a text's words."""
    return frozenset(text.split())


STOPWORDS = word_set(
    """a an the of in on at to for from by with and or as is are was were be been being am do does did done
    has have had having it its he she they him his her their this that these those there here which who
    whom whose what when where why how i you we me my your our us so if then than also into about over under
    after before because while during can could will would shall should may might must s t d ll re ve m just
    only very such same other some any each both more most per via up out off mr mrs ms dr sir"""
)
NEGATIONS = word_set(
    """not no never none nobody nothing neither nor without cannot false incorrect nicht kein keine keinen
    keinem keiner keines nie niemals nichts"""
)
YES, NO = word_set("yes yeah yep yup true correct indeed"), word_set("no nope false incorrect")
POLAR = word_set("""is are was were do does did can could will would has have had should may might must am
    isn aren don doesn didn""")
_SMALL = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
    sixteen seventeen eighteen nineteen"""
_ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth"
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_UNITS = "one|two|three|four|five|six|seven|eight|nine"
_VALUES = (
    {word: value for value, word in enumerate(_SMALL.split())}
    | {word: value for value, word in enumerate(_ORDINALS.split(), start=1)}
    | {word: 10 * value for value, word in enumerate(_TENS.split(), start=2)}
    | {"ii": 2, "iii": 3}
)
_SCALES = {"hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12}
_MONTHS = "january february march april june july august september october november december"
_ALIASES = {month[:3]: month for month in _MONTHS.split()} | {"%": "percent", "km": "kilometer"}
_ALIASES |= {"america": "usa", "american": "usa", "britain": "uk", "british": "uk"}
_ENDING = re.compile(
    r"(?<=\w{4})(?:ications?|at(?:ions?|ing|ed?|es)|ements?|ments?|iness|ness|ically|it(?:y|ies)|ions?|edly|ly"
    r"|ers?|y)$|(?<=\w{3})(?:ings?|ies|ied|ed|es|(?<!s)s|e)$"
)
_STEM = 6  # letters
_SOURCE = r"(?:document|context|text|passage|article|material|source|paper|page)s?"
_SAYS = "mention|contain|state|say|specify|provide|include|give|answer|address|indicate|cover|name|tell"
REFUSAL = re.compile(
    rf"""\b(?:can(?:\ ?not|'t)|could(?:\ not|n't))\ be\ (?:answered|determined|verified|inferred|told)\b
    | \b(?:i|we)\ (?:can(?:\ ?not|'t)|could(?:\ not|n't)|(?:am|are|was|were)\ (?:unable|not\ able)\ to)
        \ (?:\w+\ )?(?:answer|find|determine|tell|provide|say|verify|confirm|help|locate)\b
    | \bunable\ to\ (?:answer|provide|find|determine|verify|confirm)\b
    | \b(?:i|we)\ (?:do(?:\ not|n't)|did(?:\ not|n't))\ (?:\w+\ )?
        (?:know|remember|recall|have\ (?:\w+\ )?(?:information|data|access|idea|knowledge))\b
    | \b(?:{_SOURCE}|it|they|(?:the|this|these)\ (?:\w+\ ){{0,3}}\w+)\ (?:do(?:es)?|did)(?:\ not|n't)
        \ (?:\w+\ )?(?:{_SAYS})\b
    | \bno\ (?:\w+\ )?(?:figures?|information|answer|mention|idea)\b | \bsays?\ nothing\b
    | \bnot\ (?:\w+\ )?(?:mentioned|stated|specified|provided|answerable)\b
    | \bnot\ (?:\w+\ )?(?:(?:given|available|found|contained|included|covered|answered|present|described)\ )?
        (?:in|by)\ (?:the|this|these|that|any)\ (?:\w+\ )?{_SOURCE}\b
    | \b(?:i(?:'m|\ am)\ (?:not\ (?:sure|certain)|sorry|unsure)|unanswerable|idk|dunno|don't\ know)\b
    | \b(?:insufficient|not\ enough)\ (?:information|context|data)\b | \bas\ an\ ai\b
    | ^\W*(?:unknown|sorry|n/a|not\ sure)\b
    | \b(?:nicht\ im\ (?:dokument|text)|weiß\ (?:es\ |ich\ )?nicht|keine\ (?:angabe|ahnung|antwort))
    """,
    re.IGNORECASE | re.VERBOSE,
)
# Without one of these nothing refuses; looking for them costs a fiftieth of the whole pattern.
_REFUSAL_CUES = (
    "n't", "not", "no ", "unable", "unans", "unsure", "unkno", "idk", "dunno", "sorry", "insuff", "n/a",
    "nicht", "keine", "an ai",
)  # fmt: skip
_REFUSAL_WITHIN = 160  # the same words deep in a long answer are usually about a side matter

MAX_CHARS = 60_000
_MANY_CHARS = 2_000  # of a text that takes much room once it is taken apart
_GRAMS_WITHIN, _MAX_SENTENCES = 1_500, 400
END = "\n"
_NUMBER = r"\d+(?:[.,:]\d+)*(?:(?:st|nd|rd|th)\b| (?:hundred|thousand|[mbtr]+illion)\b)?|%|[.!?][\"'”)]*\s|\n"
_WORD = re.compile(rf"[぀-ヿ㐀-鿿]|[^\W\d_]+|{_NUMBER}")
_ASCII_WORD = re.compile(rf"[A-Za-z]+|{_NUMBER}", re.ASCII)  # in half the time
_COMPOUND = re.compile(rf"\b({_TENS.replace(' ', '|')})-({_UNITS})\b", re.IGNORECASE)
_THOUSANDS = re.compile(r"[1-9]\d{0,2}(?:[.,]\d{3})+")
_FOREIGN = re.compile(r"[^\x00-\x7f]")
_BREAK = re.compile(r"(?<=[.!?])[\"'”)]*\s+|\n+")
_APOSTROPHES = str.maketrans("’‘ʼ`", "''''")


def strip_accents(text: str) -> str:
    """Return a text without accents, its case kept; other signs become spaces or apostrophes."""
    plain = text if text.isascii() else unicodedata.normalize("NFKD", text)
    for sign in set(_FOREIGN.findall(plain)):
        if ord(sign) in _APOSTROPHES:
            plain = plain.replace(sign, "'")
        elif not sign.isalnum():
            plain = plain.replace(sign, "" if unicodedata.combining(sign) else " ")
    return plain


def stem(word: str) -> str:
    """Return the first six letters of a lower-case word without a known ending."""
    word = _ALIASES.get(word, word)
    return _ENDING.sub("", word, count=1)[:_STEM]


def _number(word: str) -> str:
    """The token of digits by their value; 48.600 is a thousand times 48.6 in half of Europe."""
    digits, _, scale = word.partition(" ")
    digits = digits.rstrip("stndrh")
    whole = digits.replace(".", "").replace(",", "")
    plain = whole if _THOUSANDS.fullmatch(digits) else digits.replace(",", ".")
    # other scripts' digits are digits to \d as well, and float() reads decimal ones only
    if not plain.replace(".", "", 1).isdecimal():
        return f"#{word}"
    return f"#{float(plain) * _SCALES.get(scale, 1.0):.12g}"


class _Tokens(dict[str, str]):
    """Words as written -> their tokens, made when a word first comes up."""

    def __missing__(self, word: str) -> str:
        if len(self) > 65_536:
            self.clear()
        lower = "usa" if word == "US" else word.lower()  # no pronoun
        if word[0].isdigit():
            token = _number(lower)
        elif word[0] in ".!?\n":
            token = END
        elif lower in _VALUES:
            token = f"#{_VALUES[lower]}"
        else:
            token = lower if lower in _NO_CONTENT else stem(lower)
        self[word] = token
        return token


_tokens = _Tokens()
_NO_CONTENT = STOPWORDS | NEGATIONS | {END}


class Text:
    """A text taken apart: tokens are stems, a number is `#` and its value; words are as written."""

    def __init__(self, text: str) -> None:
        """Take a text apart, its first 60,000 characters; any string is accepted."""
        self.plain = text[:MAX_CHARS]
        plain = strip_accents(self.plain)
        plain = plain.replace("n't", " not").replace("U.S.", "US")
        if "ty-" in plain:
            plain = _COMPOUND.sub(_compound, plain)
        # tuples of texts, which the garbage collector leaves alone
        self._found = tuple((_ASCII_WORD if plain.isascii() else _WORD).findall(plain))
        self.read: Sequence[str] = tuple(map(_tokens.__getitem__, self._found))  # `END` parts sentences
        self.content = frozenset(self.read) - _NO_CONTENT or frozenset(self.tokens)

    @cached_property
    def tokens(self) -> Sequence[str]:
        """Stems, numbers and small words, in order."""
        return [token for token in self.read if token is not END]

    @cached_property
    def counts(self) -> Counter[str]:
        """How often each token stands there."""
        return Counter(self.tokens)

    @cached_property
    def written(self) -> dict[str, str]:
        """The content, each token once and in order, with the word as last written."""
        pairs = zip(self.read, self._found, strict=True)
        return {token: word for token, word in pairs if token in self.content}

    @cached_property
    def numbers(self) -> frozenset[str]:
        """The tokens of numbers."""
        return frozenset([token for token in self.content if token[0] == "#"])

    @cached_property
    def polarity(self) -> int:
        """1 where it starts with yes, -1 with no, else 0."""
        first = next(compress(self._found, map(END.__ne__, self.read)), "").lower()
        return 1 if first in YES else -1 if first in NO else 0

    @cached_property
    def negations(self) -> int:
        """How many words negate, but for a leading "No,", which answers the question."""
        return sum(token in NEGATIONS for token in self.tokens[abs(self.polarity) :])

    @cached_property
    def grams(self) -> frozenset[str]:
        """Groups of three letters of the words that are no stopwords."""
        words = set(" ".join(self._found)[:_GRAMS_WITHIN].lower().split())
        return frozenset().union(*map(_grams, words - STOPWORDS))

    @cached_property
    def ordered(self) -> Sequence[str]:
        """The content as often as it stands there, in order, with `END` between sentences."""
        return tuple(filter((self.content | {END}).__contains__, self.read))

    @cached_property
    def sentences(self) -> Sequence[Sequence[str]]:
        """The content of each sentence."""
        return tuple(map(tuple, filter(None, map(str.split, " ".join(self.ordered).split(END)))))

    @cached_property
    def pairs(self) -> frozenset[str]:
        """Two tokens of the content side by side, small words left out; `END` in one parts sentences."""
        return frozenset(map(str.__add__, self.ordered, self.ordered[1:]))


@lru_cache(maxsize=16_384)
def _grams(word: str) -> frozenset[str]:
    """The groups of three letters of a word, with its ends; none of punctuation."""
    padded = f" {word} "
    return frozenset(map("".join, zip(padded, padded[1:], padded[2:], strict=False)))


def _compound(match: re.Match[str]) -> str:
    """A number such as twenty-five in digits."""
    return str(sum(_VALUES[word.lower()] for word in match.groups()))


@lru_cache(maxsize=4096)
def refuses(text: str) -> bool:
    """Return whether a text begins as a refusal does."""
    head = text[:_REFUSAL_WITHIN].translate(_APOSTROPHES)
    return any(map(head.lower().__contains__, _REFUSAL_CUES)) and REFUSAL.search(head) is not None


_short, _long = lru_cache(maxsize=4096)(Text), lru_cache(maxsize=256)(Text)


def analyse(text: str) -> Text:
    """Return the Text of a text, made once where the text keeps coming back."""
    return _short(text) if len(text) <= _MANY_CHARS else _long(text[:MAX_CHARS])


def sentences(text: str) -> list[str]:
    """Return the list of a text's sentences and lines, without blanks; at most 400 of them."""
    return [*filter(None, map(str.strip, _BREAK.split(text[:MAX_CHARS])))][:_MAX_SENTENCES]
