"""The few words that the embedded model knows, English first: function words, number words, aliases, refusals."""

from __future__ import annotations

import re


def word_list(text: str) -> list[str]:
    """The words of a text."""
    return text.split()


def word_set(text: str) -> frozenset[str]:
    """The words of a text, without order."""
    return frozenset(text.split())


STOPWORDS = word_set(
    """a an the of in on at to for from by with and or as is are was were be been being am do does did done has
    have had having it its he she they them his her their this that these those there here which who whom whose
    what when where why how i you we me my your our us so if then than also into about over under after before
    because while during can could will would shall should may might must s t d ll re ve m just only very such
    same other some any each both more most per via up out off mr mrs ms dr sir"""
)
NEGATIONS = word_set("not no never none nobody nothing neither nor without cannot false incorrect")
YES = word_set("yes yeah yep yup true correct indeed")
NO = word_set("no nope false incorrect")
POLAR = word_set("""is are was were do does did can could will would has have had should may might must am
    isn aren don doesn didn""")
_SMALL_WORDS = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
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
    (re.compile(r"\bunited states(?: of america)?\b", re.IGNORECASE), "Unitedstates"),
    (re.compile(r"\b(?:united kingdom|great britain)\b", re.IGNORECASE), "Unitedkingdom"),
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
    rf"""\b(?:can(?:\ ?not|'t)|could(?:\ not|n't))\ be\ (?:answered|determined|verified|inferred|told|established)\b
    | \b(?:i|we)\ (?:can(?:\ ?not|'t)|could(?:\ not|n't)|(?:am|are|was|were)\ (?:unable|not\ able)\ to)\ (?:\w+\ )?
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
    | \bnot\ (?:\w+\ )?(?:given|available|found|contained|included|covered|answered|present|described)\ (?:in|by)
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
