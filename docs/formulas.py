"""A hook of mkdocs: formulas become MathML when the handbook is built, so that no script has to draw them."""

import html
import re
from typing import Any

from latex2mathml.converter import convert

_FORMULA = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL)


def on_page_content(text: str, **_: Any) -> str:
    """The page with its formulas drawn."""
    return _FORMULA.sub(
        lambda found: convert(html.unescape(found[2]), display="block" if found[1] == "div" else "inline"),
        text,
    )
