"""The options that several commands share, and what they come to."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from judgecal.cli.output import print_json, print_prose
from judgecal.errors import notice

if TYPE_CHECKING:
    from judgecal.experiment import CostEstimate, Look, RunOptions
    from judgecal.workspace import Workspace


def option(what: str, *names: str, **more: Any) -> Any:
    """An option with its help; its name is the parameter's where it has no other."""
    return typer.Option(*names, help=what, **more)


def argument(what: str, **more: Any) -> Any:
    """A word that stands without an option."""
    return typer.Argument(help=what, **more)


UNSCORED = 4
"""The exit code where items ended without a verdict; that of a decision goes before it."""

GoldName = Annotated[str, option("Gold set: a name under gold/, or a path.")]
Replace = Annotated[bool, option("Write over the file of --output where it is there.")]
Full = Annotated[bool, option("Everything that the page says, as text.")]
Json = Annotated[bool, option("Print one JSON object on stdout.")]
Seed = Annotated[int, option("Seed of every draw.", min=0)]
Name = Annotated[str | None, option("Slug of the experiment, instead of <command>-<set>-<hash>.")]
Metric = Annotated[str | None, option("By which; macro_agreement by default, accuracy on nominal labels.")]
Repeats = Annotated[int, option("Judgements of each item by each judge.")]
Split = Annotated[str, option("open, train, dev, test or all.")]
ExperimentName = Annotated[str, argument("Slug or path of an experiment.", metavar="EXPERIMENT")]


@dataclass(frozen=True, slots=True)
class CallArguments:
    """The options of every command that calls models."""

    budget_usd: Annotated[
        float | None, option("Spend at most this much in this run; checked before each call.")
    ] = None
    budget_total_usd: Annotated[
        float | None, option("Spend at most this much in all runs of the experiment together.")
    ] = None
    dry_run: Annotated[bool, option("Say how many calls it would take and at what cost; call nothing.")] = (
        False
    )
    seed: Seed = 0
    name: Name = None
    full: Full = False
    json: Json = False


@dataclass(frozen=True, slots=True)
class ResumeArguments(CallArguments):
    """The options of a command that calls models and resumes where it stopped."""

    no_cache: Annotated[bool, option("Take no stored answers of other experiments.")] = False
    retry_unscored: Annotated[bool, option("Also call again where a reply gave no usable verdict.")] = False

    def options(self, *, repeats: int = 1) -> RunOptions:
        """As the engine takes them, checked."""
        from judgecal.experiment import RunOptions

        options = RunOptions(
            repeats=repeats,
            limit=self.limit if isinstance(self, RunArguments) else None,
            budget_usd=self.budget_usd,
            budget_total_usd=self.budget_total_usd,
            retry_unscored=self.retry_unscored,
            use_cache=not self.no_cache,
            batch=isinstance(self, BatchArguments) and self.batch,
        )
        options.check()
        return options


@dataclass(frozen=True, slots=True)
class RunArguments(ResumeArguments):
    """The options of a command that judges items, first ones first."""

    limit: Annotated[int | None, option("Only the first N items; a larger N extends the run.")] = None


@dataclass(frozen=True, slots=True)
class BatchArguments(RunArguments):
    """The options of a command whose calls may wait: those of judges and answerers over many items."""

    batch: Annotated[
        bool,
        option(
            "Send the calls as batches of OpenAI, Anthropic or Gemini: about half the price, within a "
            "day. Tried "
            "against servers of our own; no real provider was asked."
        ),
    ] = False


@dataclass(frozen=True, slots=True)
class RuleArguments:
    """The options that set the rules over `expect` among the local judges, all at once."""

    match: Annotated[
        str | None, option("How include and exclude look for a phrase: substring (the default) or phrase.")
    ] = None
    refusal_message: Annotated[
        str | None, option("The words that refuse takes for a refusal.", metavar="TEXT")
    ] = None
    lemmas: Annotated[
        str | None,
        option("Compare words in their dictionary forms: pl, en ...; needs simplemma.", metavar="LANGUAGE"),
    ] = None

    def set(self, judges: Sequence[str]) -> list[str]:
        """The judges' names with these settings where they are taken."""
        from judgecal.judges import set_local

        return set_local(judges, match=self.match, message=self.refusal_message, lemmas=self.lemmas)


class State:
    """What the options before the command say; `ctx.obj` of every command."""

    def __init__(self, workspace: Path | None = None) -> None:
        self.workspace = workspace


def workspace_of(ctx: typer.Context) -> Workspace:
    """The workspace of a command."""
    from judgecal.workspace import find_workspace

    return find_workspace(ctx.obj.workspace)


def typed_command(ctx: typer.Context, command: str, *, without: Sequence[str] = ()) -> str:
    """The command as it was typed, but for some parameters, by their names in Python."""
    words = ["judgecal", *(["--workspace", str(ctx.obj.workspace)] if ctx.obj.workspace is not None else [])]
    words += command.split()
    for parameter in ctx.command.params:
        source = ctx.get_parameter_source(str(parameter.name))
        if parameter.name in without or source is None or source.name != "COMMANDLINE":
            continue
        value = ctx.params[str(parameter.name)]
        values = list(value) if isinstance(value, list | tuple) else [value]
        option = () if parameter.param_type_name == "argument" else parameter.opts[:1]
        words += [str(part) for one in values for part in (*option, *([] if one is True else [one]))]
    return shlex.join(words)


def names(text: str | None) -> list[str]:
    """`A,B` as a list; empty parts are left out, and each name counts once."""
    parts = (part.strip() for part in (text or "").split(","))
    return list(dict.fromkeys(part for part in parts if part))


def show_plan(plan: CostEstimate, *, json: bool, look: str | None = None, live: bool = False) -> None:
    """Print what `--dry-run` found out.

    Args:
        plan: the calls and their cost.
        json: as one JSON object.
        look: what a run would take from the test labels.
        live: the command has no `--batch`, so that there is no price of it to show.
    """
    usd, in_batches = plan.usd_at_most, None if live else plan.usd_in_batches
    if json:
        values: dict[str, Any] = {
            "calls": plan.calls,
            "stored": plan.stored,
            "prompt_tokens": plan.prompt_tokens,
        }
        values |= {"usd_at_most": usd, "usd_in_batches": in_batches, "seconds": plan.seconds}
        values["waiting"] = plan.waiting
        print_json({**values, **({"test_look": look} if look else {})})
        return
    time = "unknown before the first calls" if plan.seconds is None else f"about {plan.seconds:.0f} s"
    cost = "unknown: some model has no price" if usd is None else f"at most {usd:.4f} USD"
    if in_batches not in (None, usd):
        cost += f" ({in_batches:.4f} USD with --batch)"
    waiting = f"{plan.waiting} wait in a batch (--batch takes their replies), " if plan.waiting else ""
    print_prose(
        f"{plan.calls} calls to make, {waiting}{plan.stored} judgements stored already, "
        f"about {plan.prompt_tokens} prompt tokens, cost {cost}, time {time}"
    )
    if look is not None:
        print_prose(look)


def would_look(look: Look | None, gold: str, *, level: float = 0.95, where: str = "") -> str | None:
    """What a run would take from the test labels of a set, in a sentence; None where it takes nothing."""
    if look is None:
        return None
    again = "" if look.new else " (which was taken before)"
    return f"A run would spend a look at test{where}: {look.sentence(gold, level)}{again}."


def show_look(look: str | None, *, json: bool) -> None:
    """Print what the `--dry-run` of a command that calls no model found out."""
    if json:
        print_json({"test_look": look})
    else:
        print_prose(look or "A run would spend no look at test: no test item is among these.")


def finish(n_unscored: int, *why: str, journal: Path | None = None) -> None:
    """The end of every command that judges: exit 4 where something ended unscored, once it is said why.

    `why` are sentences; with `journal` the one that it holds the reasons.
    """
    if n_unscored:
        reasons = [f"{n_unscored} judgements are unscored; {journal} holds why"] if journal else why
        notice(*(f"judgecal: {reason}" for reason in reasons))
        raise typer.Exit(UNSCORED)
