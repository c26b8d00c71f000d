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
_CANDIDATES = 64  # tokens in whose place they are: a reply is read again for each

NO_TOKENS = "the server gave no chances"
NO_TOKEN = "the verdict was no single token"
NO_MASS = f"less than {LEAST_MASS:g} of the chances lay on allowed verdicts"


def weighed(
    signature: LoadedSignature,
    text: str,
    tokens: Sequence[Token],
    parsed: ParsedReply,
    read: Callable[[str], ParsedReply],
) -> ParsedReply:
    """What a reply says with the chances of its verdict, of a numeric scale their mean; else as it was said.

    A verdict of several tokens has none, nor has one that may be the beginning of another, as `1` is of `10`
    where the model writes digits one by one: unless the longer one is seen to be a token of its own. A token
    that stands alone, with nothing that might have stood there, tells no chance.
    """
    scale, verdict = signature.judge_scale(), parsed.verdict
    words = _words(scale)
    others = [(word, label) for word, label in words.items() if label != verdict][:_OTHERS]

    def decides(token: Token) -> bool:
        core = token[1].strip(_AROUND)
        start = token[0] + token[1].index(core)
        before, whole, after = text[:start], text[start : start + len(core)], text[start + len(core) :]
        return whole == core and any(
            read(f"{before}{word}{after}").verdict == label for word, label in others
        )

    saying = [token for token in tokens if read_verdict(signature, token[1].strip(_AROUND))[0] == verdict]
    deciding = [token for token in saying[-_CANDIDATES:] if decides(token)]
    token: Token = deciding[0] if len(deciding) == 1 else [0, "", {}]
    forms = {form: form.strip(_AROUND).lower() for form in token[2]}
    mass: dict[Label, float] = {}
    for form, core in forms.items():
        label = read_verdict(signature, core)[0]
        longer = {word for word, other in words.items() if other != label and word.startswith(core)}
        if label is not None and longer <= {*forms.values()}:
            mass[label] = mass.get(label, 0.0) + math.exp(token[2][form])
    total, alone = sum(mass.values()), not tokens or len(forms) == 1
    if verdict not in mass or total < LEAST_MASS or alone:
        why = NO_TOKENS if alone else NO_MASS if verdict in mass else NO_TOKEN
        return replace(parsed, why_said=why, token=token)
    names: dict[Label, str] = {label: f"{label:g}" if isinstance(label, float) else label for label in mass}
    if scale.kind == "binary":
        names = dict(zip((1.0, 0.0), signature.words or ("yes", "no"), strict=True))
    chances = {names[label]: mass[label] / total for label in mass}
    if scale.numeric:
        mean = sum(float(label) * share for label, share in mass.items()) / total
        verdict = min(scale.high, max(scale.low, mean))  # rounding
    return replace(parsed, verdict=verdict, chances=chances, token=token)


def expected(
    signature: LoadedSignature, _text: str, tokens: Sequence[Token], parsed: ParsedReply
) -> ParsedReply:
    """The mean by the embedded model's own chances of its verdicts; as it was said where it gives none."""
    chances = tokens[0][2] if tokens else {}
    labels = {read_verdict(signature, word)[0]: share for word, share in chances.items()}
    if not labels or None in labels:
        return parsed
    return replace(
        parsed, verdict=round(sum(float(label or 0) * share for label, share in labels.items()), 4)
    )


def _words(scale: Scale) -> dict[str, Label]:
    """What may be said, in small letters; nothing where numbers have decimals, of which none is one token."""
    if scale.kind == "binary":
        return {word: float(word in TRUE_WORDS) for word in sorted(TRUE_WORDS | FALSE_WORDS)}
    whole = range(int(scale.low), int(scale.high) + 1) if scale.kind in ("ordinal", "percentage") else ()
    return {word.lower(): word for word in scale.categories} | {str(n): float(n) for n in whole}
