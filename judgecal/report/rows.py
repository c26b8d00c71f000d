"""What rows without labels, and labels where judges differ, add to the page of a comparison."""

from __future__ import annotations

from judgecal.experiment.rows import OnRows
from judgecal.report.charts import change_of, in_percent
from judgecal.report.document import Paragraph, Section, section, table
from judgecal.report.numbers import DASH, count
from judgecal.report.wording import sentence
from judgecal.stats.metrics import amount_of


def rows_section(on: OnRows | None, metric: str, scale: str) -> Section | None:
    """How far judges differ, what that bounds, what labels say, and how many it takes; None without rows."""
    if on is None:
        return None
    worst = on.differ.worst_loss

    def number(n: int | None) -> str:
        return DASH if n is None else count(n)

    values = table(
        [on],
        {
            "judges": lambda on: f"{on.reference}, {on.candidate}",
            "rows": lambda on: count(on.differ.n),
            "differ": lambda on: in_percent(on.differ.share),
            "loses at most": lambda _: (
                DASH if worst is None or worst.high is None else amount_of(worst.high, metric, scale)
            ),
            "labels": lambda on: count(on.n_labels),
            "first - second": lambda on: DASH if on.loss is None else change_of(on.loss, metric, scale),
            "needed": lambda on: number(on.labels_needed),
            "at random": lambda on: number(on.labels_at_random),
        },
        short=True,
    )
    return section(
        "rows",
        "Where they differ",
        "Where two judges say the same, neither loses to the other, whatever people say. So labels are best "
        "spent where they differ. Loses at most: the second judge, whatever the labels. Needed: labels for a "
        "decision in four draws of five, drawn mostly where they differ, and drawn at random.",
        values,
        [Paragraph(sentence(on.look), short=True)] if on.look else False,
    )
