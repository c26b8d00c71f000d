"""A document as one self-contained page: nothing to load, and nothing runs but the page's own script."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from judgecal.errors import visible
from judgecal.report.document import Block, Document

_FRAME = {"style": "width:100%;height:48rem;border:1px solid #8884;border-radius:6px", "sandbox": "allow-scripts"}


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("judgecal.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalize,
    )
    environment.globals["draw"] = _draw
    environment.globals["source"] = _source
    environment.filters["svg"] = Markup
    return environment


def _finalize(value: Any) -> Any:
    """Plain text loses what acts unseen; what is markup already stays."""
    return visible(value) if isinstance(value, str) and not hasattr(value, "__html__") else value


def _draw(block: Block) -> str:
    """A block by the macro of `blocks.html` that has the name of its class."""
    macros = _environment().get_template("blocks.html").module
    drawn: str = getattr(macros, type(block).__name__.lower())(block)
    return drawn


def _source(name: str) -> Markup:
    """A style sheet or a script of ours, as it is."""
    loader = _environment().loader
    assert loader is not None
    return Markup(loader.get_source(_environment(), name)[0])


def rendered(template: str, **values: Any) -> str:
    """A template of `report/templates/` with its values; text is escaped, a missing value is an error."""
    return _environment().get_template(template).render(**values)


def html(document: Document) -> str:
    """The whole page."""
    script = base64.b64encode(hashlib.sha256(_source("page.js").encode()).digest()).decode()
    return rendered("page.html", document=document, script_hash=script)


def frame(document: Document) -> str:
    """The page in a frame of its own, for a notebook."""
    return rendered("frame.html", document=document, page=html(document), **_FRAME)
