"""The documents of the commands that list what is here: models and judges."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Sequence

from judgecal.engine.cache import ModelsHere
from judgecal.judges.listing import ListedSignature, Listing, ShownJudge
from judgecal.records import Headline
from judgecal.report.document import (
    Bullets,
    Document,
    Grid,
    Lines,
    Paragraph,
    listing,
    notes_section,
    section,
    table,
)
from judgecal.report.wording import DASH, count_of, sentences

_LINES = 12  # of a prompt, in the short form
_WIDTH = 79  # of its lines; JSON has them as they are


# --- models


def models_document(here: ModelsHere) -> Document:
    """Lay out ModelsHere (models, prices, keys, where replies are stored) as the Document of `models`."""
    words = {None: "none needed", True: "is set"}
    rows = [
        [
            model.alias,
            words.get(model.key_present, f"no {model.key_env}"),
            model.id,
            *(
                "unknown" if usd is None else f"{usd:g}"
                for usd in (model.input_usd_per_1m, model.output_usd_per_1m)
            ),
            str(model.context_window or DASH),
        ]
        for models in (here.models[: here.n_own], here.models[here.n_own :])
        for model in sorted(models, key=lambda model: model.key_present is False)
    ]
    header = ["alias", "key", "litellm id", "USD/1M in", "USD/1M out", "context"]
    ready = sum(model.key_present is not False for model in here.models)
    headline = Headline(
        "models",
        f"{ready} of {len(rows):,} models have the key they need, or need none.",
        (f"Replies are stored in {here.replies} ({here.n_bytes / 1e6:,.1f} MB) and served again.",),
        next="judgecal score --models embedded",
    )
    about = "Prices in US dollars for a million tokens; judgecal.toml has further aliases."
    return Document(
        "Models", about, headline, [section("models", "Models", "", Grid(header, rows, left=3, short=True))]
    )


# --- judges


def judges_here_document(here: Listing) -> Document:
    """Lay out a Listing (local judges, signatures, suites, problems) as the Document of `judges`."""
    signatures = [signature for signature in here.signatures if not signature.problem]
    prompts = [prompt for prompt in here.prompts if not prompt.problem]
    suites = [suite for suite in here.suites if not suite.problem]
    broken = [
        *(
            f"signature {signature.name}: {signature.problem}"
            for signature in (*here.signatures, *here.prompts)
            if signature.problem
        ),
        *(f"suite {suite.name}: {suite.problem}" for suite in here.suites if suite.problem),
    ]
    headline = Headline(
        "judges",
        f"{count_of(len(signatures), 'signature')}, {count_of(len(prompts), 'prompt')}, "
        f"{count_of(len(suites), 'suite')} and "
        f"{count_of(len(here.local), 'local judge')} can judge.",
        sentences(bool(broken) and f"{len(broken):,} more cannot judge yet: --full says why."),
        next="judgecal score --judge exact_match@local",
    )
    local = table(
        here.local,
        {
            "local judge": lambda judge: judge.judge,
            "needs": lambda judge: judge.needs,
            "scale": lambda judge: judge.scale,
            "source": lambda judge: judge.source or DASH,
        },
        left=4,
        short=True,
    )
    members = Grid(
        ("suite", "judges"), [(suite.name, ", ".join(suite.judges)) for suite in suites], left=2, short=True
    )
    names, texts = (", ".join(row.name for row in rows) or "none" for rows in (signatures, prompts))
    return Document(
        title="Judges",
        about="",
        headline=headline,
        sections=[
            section(
                "signatures",
                "Signatures",
                "Prompts that judge on any model: SIGNATURE@MODEL, or as text prompts/NAME.md@MODEL.",
                Paragraph(f"Signatures: {names}. Text prompts: {texts}.", short=True),
                _signatures((*signatures, *prompts)),
            ),
            section("suites", "Suites", "Judges that run together.", bool(suites) and members),
            section("local", "Local judges", "Rules and metrics that call no model.", local),
            *notes_section(sentences(broken)),
        ],
        run_lines=("run: judgecal judges",),
    )


def _signatures(rows: Sequence[ListedSignature]) -> Grid:
    return table(
        rows,
        {
            "signature": lambda signature: signature.name,
            "verdict": lambda signature: signature.verdict or DASH,
            "unit": lambda signature: signature.unit or DASH,
            "inputs": lambda signature: ", ".join(signature.inputs) or DASH,
        },
        left=4,
    )


def shown_judge_document(judge: ShownJudge) -> Document:
    """Lay out a ShownJudge (problems, inputs, the prompt as sent) as the Document of `judges NAME`."""
    problems = [f"{problem.where}: {problem.message}" for problem in judge.problems]
    text = (judge.prompt or "").splitlines()
    lines = [part for line in text for part in textwrap.wrap(line, _WIDTH, break_long_words=False) or [""]]
    what = f"{count_of(len(problems), 'problem')}" if problems else "no problem"
    asks = f"It asks for {', '.join(judge.inputs)}." if judge.inputs else ""
    gives = f"It judges {judge.unit}s on the scale {judge.scale}." if judge.scale else ""
    name = judge.judge if "@" in judge.judge else f"{judge.judge}@embedded"
    following = f"judgecal score --judge {shlex.quote(name)}"
    if judge.kind == "suite":
        following = f"judgecal judge answers.csv --suite {judge.judge} -o judged.csv"
    elif problems or not judge.scale:
        following = "judgecal judges"
    headline = Headline(
        "problems" if problems else "sound",
        f"{judge.judge} has {what}.",
        sentences(gives, asks, len(lines) > _LINES and "--full prints all of its prompt."),
        next=following,
    )
    return listing(
        f"Judge {judge.judge}",
        headline,
        Bullets([*problems, *judge.about, *judge.judges], short=True),
        bool(lines) and Lines(lines[:_LINES], short=True),
        len(lines) > _LINES and Lines(lines[_LINES:]),
    )
