"""A verdict from the chances of its token: the probability of each allowed verdict, and their mean.

As in G-Eval (Liu et al. 2023, arXiv:2303.16634) the probabilities are taken over the allowed verdicts alone.
The token is the one whose replacement by another verdict changes what is read of the reply, wherever it
stands: behind a reasoning, in JSON, below a marker. The chances are those given all that stands before it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from judgecal.engine import ParsedReply
from judgecal.engine.calls import Token
from judgecal.judges.reply import read_verdict
from judgecal.scale import FALSE_WORDS, TRUE_WORDS, Label, Scale
from judgecal.signatures import LoadedSignature

LEAST_MASS = 0.9
"""Of the probability at the verdict's token that must lie on allowed verdicts."""
_AROUND = " \t\r\n\"'`*_{}[](),.:;"  # what a token may hold beside a verdict
_OTHERS = 12  # verdicts that are tried in a token's place

NO_TOKENS = "the server gave no chances"
NO_TOKEN = "the verdict was no single token"
NO_MASS = f"less than {LEAST_MASS:g} of the chances lay on allowed verdicts"


def mean_scale(scale: Scale) -> Scale:
    """The scale of verdicts that are means by chances."""
    return scale.of_means if scale.kind in ("binary", "ordinal") else scale


def weighed(
    signature: LoadedSignature,
    text: str,
    tokens: Sequence[Token],
    parsed: ParsedReply,
    read: Callable[[str], ParsedReply],
) -> ParsedReply:
    """What a reply says with the chances of its verdict, of a numeric scale their mean; else as it was said.

    A verdict of several tokens has none, nor has one that may be the beginning of another, as `1` is of `10`
    where the model writes digits one by one: unless the longer one is seen to be a token of its own.
    """
    words, said = _words(signature.judge_scale()), parsed.verdict
    others = [(word, label) for word, label in words.items() if label != said][:_OTHERS]

    def decides(token: Token) -> bool:
        core = token[1].strip(_AROUND)
        if not core or read_verdict(signature, core)[0] != said:
            return False
        start = token[0] + token[1].index(core)
        before, after = text[:start], text[start + len(core) :]
        whole = text[start : start + len(core)] == core
        return whole and any(read(f"{before}{word}{after}").verdict == label for word, label in others)

    if len(found := [token for token in tokens if decides(token)]) != 1:
        return replace(parsed, why_said=NO_TOKEN if tokens else NO_TOKENS, token=[0, "", {}])
    forms = {form: form.strip(_AROUND).lower() for form in found[0][2]}
    mass: dict[Label, float] = {}
    for form, core in forms.items():
        label = read_verdict(signature, core)[0] if core else None
        longer = {word for word, other in words.items() if other != label and word.startswith(core)}
        if label is not None and longer <= {*forms.values()}:
            mass[label] = mass.get(label, 0.0) + math.exp(found[0][2][form])
    total = sum(mass.values())
    if said not in mass or total < LEAST_MASS:
        why = NO_MASS if said in mass else NO_TOKEN
        return replace(parsed, why_said=why, token=found[0])
    shares = {label: mass[label] / total for label in sorted(mass, key=str)}
    if signature.judge_scale().numeric:
        said = sum(float(label) * share for label, share in shares.items())
    names = dict(zip("10", signature.words or ("yes", "no"), strict=True))
    binary = signature.judge_scale().kind == "binary"
    texts = {label: label if isinstance(label, str) else f"{label:g}" for label in shares}
    named = {names[texts[label]] if binary else texts[label]: share for label, share in shares.items()}
    return replace(parsed, verdict=said, chances=named, token=found[0])


def _words(scale: Scale) -> dict[str, Label]:
    """What may be said, in small letters; nothing where numbers have decimals, of which none is one token."""
    if scale.kind == "binary":
        return {word: float(word in TRUE_WORDS) for word in sorted(TRUE_WORDS | FALSE_WORDS)}
    whole = range(int(scale.low), int(scale.high) + 1) if scale.kind in ("ordinal", "percentage") else ()
    return {word.lower(): word for word in scale.categories} | {str(n): float(n) for n in whole}
