"""What stands first where judges came to no verdict: that, why, where their replies are, and how to ask
again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from judgecal.experiment.unread import Unread, UnreadJudge
from judgecal.records import Headline
from judgecal.report import numbers
from judgecal.report.document import Section, Table
from judgecal.report.wording import in_a_row

_SHOWN = 160  # characters of a message in a headline


def unread_headline(unread: Unread | None) -> Headline | None:
    """Nothing could be read, so nobody is ranked; None where some judge has a verdict."""
    if unread is None or not unread.all:
        return None
    most = max(unread.judges, key=lambda judge: judge.n)
    who = most.judge if len(unread.judges) == 1 else f"none of {len(unread.judges)} judges"
    gave = f"{who} gave {'no' if len(unread.judges) == 1 else 'a'} verdict"
    what = f"Nothing could be read: {gave} on any of {numbers.count_of(most.n, 'item')}."
    because = (*_reasons(unread), f"{unread.journal} holds what came instead.")
    return Headline("unread", what, because, next=unread.again)


def naming_unread(headline: Headline, unread: Unread | None) -> Headline:
    """A headline that names the judges without any verdict too, each with its reason."""
    if unread is None or not unread.judges:
        return headline
    reasons = [
        f"{judge.judge} gave no verdict on any of {numbers.count_of(judge.n, 'item')}: {_why(judge)}."
        for judge in unread.judges
    ]
    names = in_a_row([judge.judge for judge in unread.judges])
    again = f"How {names} would do: {unread.again} asks again."
    return replace(headline, because=(*headline.because, *reasons), unknown=(*headline.unknown, again))


def unread_section(unread: Unread) -> Section:
    """A line a judge: the commonest failure."""
    rows = [
        [
            judge.judge,
            numbers.count(judge.n),
            judge.kind,
            numbers.count(judge.n_message),
            judge.message or numbers.DASH,
        ]
        for judge in unread.judges
    ]
    table = Table(["judge", "without a verdict", "failure", "with this message", "message"], rows, left=1)
    caption = "Serves whoever mends it: the commonest failure of each judge, and what it says."
    return Section("unread", "Why nothing could be read", caption, [table])


def _reasons(unread: Unread) -> Iterator[str]:
    for judge in unread.judges[:3]:
        of = f"Of {judge.judge} most often" if len(unread.judges) > 1 else "Most often"
        yield f"{of}: {_why(judge)}."


def _why(judge: UnreadJudge) -> str:
    """The commonest message, shortened; without one what kind of failure it is."""
    if judge.message is None:
        return f"the failure is of kind {judge.kind}"
    text = " ".join(judge.message.split()).rstrip(".")
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]} ..."
