"""The documents of `gold label` and `gold adjudicate`: what is labelled, by whom, how far raters agree."""

from __future__ import annotations

from judgecal.desk.progress import OVERLAP_LEAST, Adjudication, LabelProgress, RaterProgress
from judgecal.records import Headline
from judgecal.report.document import Block, Bullets, Document, Section, Table
from judgecal.report.numbers import DASH, count, count_of, estimate, percent


def label_document(result: LabelProgress, n_differ: int, *, following: str, again: str) -> Document:
    """How labelling stands.

    Args:
        n_differ: items on which raters differ and that nobody has settled.
        following: what the labels are for, where nothing is to be settled first.
        again: the command that goes on with the labelling.
    """
    rows = [_rater_row(rater, one) for rater, one in result.raters.items()]
    header = ("rater", "labels", "cannot tell", "seconds an item", "same on a second look")
    blocks: list[Block] = [Table(header, rows, short=True)]
    total = sum(result.classes.values())
    if total:
        classes = [(name, count(n), percent(n / total)) for name, n in result.classes.items()]
        blocks.append(Table(("label", "given", "share"), classes, short=len(classes) <= 5))
    blocks.append(Bullets(_facts(result), short=True))
    section = Section("labels", "Labels", "Serves whoever decides when enough is labelled.", blocks)
    about = f"{result.set_}, scale {result.scale}"
    headline = _label_headline(result, n_differ, following=following, again=again)
    return Document(f"Labels of {result.set_}", about, headline, [section])


def _rater_row(rater: str, one: RaterProgress) -> tuple[str, ...]:
    seconds = DASH if one.seconds is None else f"{one.seconds:.0f}"
    same = f"{one.same} of {one.second_looks}" if one.second_looks else DASH
    return rater, count(one.n), count(one.cannot_tell), seconds, same


def _facts(result: LabelProgress) -> list[str]:
    facts = []
    if len(result.raters) > 1:
        if result.agreement is None:
            facts.append(
                f"{count_of(result.n_overlap, 'item')} labelled by two or more: {OVERLAP_LEAST} are needed "
                "before their agreement says anything."
            )
        else:
            alpha = estimate(result.agreement, 2)
            facts.append(
                f"Krippendorff's alpha of these raters: {alpha}, on {count_of(result.n_overlap, 'item')}."
            )
    if result.half_width is not None and result.half_width_more is not None and result.rate is not None:
        then = f"; {count_of(result.n_more, 'label')} more: ±{100.0 * result.half_width_more:.1f}"
        known = "known with the judge's verdicts beside them" if result.with_judge else "known"
        facts.append(
            f"The rate of these labels alone ({result.rate_of}) is {percent(result.rate.value)}, {known} to "
            f"±{100.0 * result.half_width:.1f} points{then if result.n_more else ''}."
        )
    return facts


def _label_headline(result: LabelProgress, n_differ: int, *, following: str, again: str) -> Headline:
    left = result.n_items - result.n_labelled
    if not result.n_items:
        return Headline("none", f"Nothing of {result.set_} is to be labelled by this.", next=following)
    done = f"{count(result.n_labelled)} of {count_of(result.n_items, 'item')} of {result.set_}"
    verb = "has" if result.n_labelled == 1 else "have"
    if not result.n_labelled:
        return Headline("waits for labels", f"{done} have a label: they wait for people.", next=again)
    because = []
    if n_differ:
        because.append(f"Raters differ on {count_of(n_differ, 'item')}, which nobody has settled.")
        following = f"judgecal gold adjudicate {result.set_}"
    if left and not n_differ and not result.enough:
        because.append(f"{count(left)} more are left: the same command goes on where this ended.")
    if result.enough and left:
        because.append(f"The rate is known to ±{100.0 * result.target:g} points, as was asked for.")
    return Headline("labelled", f"{done} {verb} a label.", tuple(because), next=following)


def adjudicated_document(result: Adjudication) -> Document:
    """What settling changed."""
    rows = [
        (rater, count(one.same), count(one.n), percent(one.same / one.n))
        for rater, one in result.raters.items()
    ]
    blocks: list[Block] = []
    if rows:
        title = "How many labels of each rater the adjudicated label confirms, on these items"
        blocks.append(Table(("rater", "confirmed", "of", "share"), rows, title=title, short=True))
    facts = (
        [f"{count_of(result.n_ties, 'item')} had no gold label before, as the raters tied."]
        if result.n_ties
        else []
    )
    if result.n_cannot_tell:
        facts.append(
            f"On {count_of(result.n_cannot_tell, 'item')} the adjudicator could not tell: they stay as they "
            "were."
        )
    blocks.append(Bullets(facts, short=True))
    section = Section("settled", "Settled", "Serves whoever relies on the gold label.", blocks)
    name = result.set_
    if not result.n_differ:
        headline = Headline(
            "none", f"Raters differ on no item of {name}.", next=f"judgecal score --gold {name}"
        )
    elif result.n_left:
        what = (
            f"{count(result.n_left)} of {count_of(result.n_differ, 'item')} on which raters of {name} differ "
            "are open."
        )
        headline = Headline("open", what, _changed(result), next=f"judgecal gold adjudicate {name}")
    else:
        what = f"All {count_of(result.n_differ, 'item')} on which raters of {name} differ are settled."
        headline = Headline("settled", what, _changed(result), next=f"judgecal score --gold {name}")
    return Document(f"Adjudication of {name}", f"{name}, scale {result.scale}", headline, [section])


def _changed(result: Adjudication) -> tuple[str, ...]:
    if not result.n_settled:
        return ()
    return (
        f"{count(result.n_changed)} of {count(result.n_settled)} settled labels are other than the raters' "
        "own.",
    )
