"""Systems answer questions and judges rate the answers: what `evaluate` and `answer` both do.

Each answer and each verdict is had once, whatever interrupts the run: the systems' journals, the journal of
judgements and `items.jsonl` are in the experiment's folder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from judgecal.engine import Budget, require_prices
from judgecal.errors import InputError
from judgecal.experiment import (
    CostEstimate,
    Experiment,
    ReadRow,
    RunOptions,
    models_of,
    open_journal,
    stored_notes,
    stored_rows,
    together,
)
from judgecal.goldset import item_row, read_items
from judgecal.rag.answering.questions import Question
from judgecal.rag.evaluation.judging import Panel
from judgecal.rag.evaluation.measured import Measured
from judgecal.rag.evaluation.system import Asking, System, SystemAnswer
from judgecal.records import Item
from judgecal.tables import write_json_lines
from judgecal.workspace import shown

ITEMS_FILE = "items.jsonl"
"""The answers as items, in the format of a gold set: what `gold sheet` draws from."""


def answered_items(folder: Path) -> tuple[Item, ...]:
    """The items of an experiment: question, reference, answer, system and the documents handed over."""
    path = folder / ITEMS_FILE
    if not path.is_file():
        raise InputError(
            f"{shown(folder)}: holds no answers ({ITEMS_FILE}): give an experiment of `judgecal answer`; one "
            "that was interrupted is finished by the same command"
        )
    return read_items(path)


@dataclass(frozen=True)
class SystemRun:
    """Systems, their questions, and the judges of their answers.

    Attributes:
        systems: each with the folder of its journals; one may answer under several names.
        live: systems are asked live, and once, whatever the options say: how long they take is measured.
        guess: the answers that may come, for a preview: likely ones, or, given True, as long as may be.
    """

    experiment: Experiment
    questions: Sequence[Question]
    systems: Sequence[tuple[System, Path]]
    panel: Panel
    options: RunOptions
    live: bool
    guess: Callable[[bool], Iterable[SystemAnswer]]

    def check_prices(self) -> None:
        """InputError: a budget meets a model without a price, or batches no model that has them."""
        models = [model for system, _ in self.systems for model in system.models()]
        judges = models_of([member.judge for member in self.panel.members])
        if self.live:
            require_prices(models, self.options.limit_usd)
        self.options.check_models(judges if self.live else [*models, *judges])

    def _asking(self, folder: Path, budget: Budget) -> Asking:
        options = replace(self.options, limit=None)
        return Asking(folder, replace(options, repeats=1, batch=False) if self.live else options, budget)

    def preview(self) -> CostEstimate:
        """What a run would call; nothing is written. Answers that are not there yet are guessed."""
        budget, journal = Budget(self.options.limit_usd), stored_rows(self.experiment.journal)
        asked = [one.preview(self.questions, self._asking(folder, budget)) for one, folder in self.systems]
        if self.live:
            asked = [replace(one, usd_in_batches=one.usd_at_most) for one in asked]
        near, far = (self.panel.preview(self.expected(far), journal, self.options) for far in (False, True))
        return together(
            [*asked, replace(near, usd_at_most=far.usd_at_most, usd_in_batches=far.usd_in_batches)]
        )

    def expected(self, far: bool = False) -> list[ReadRow]:
        """Every answer as judges will see it; one that is not there yet as `guess` has it."""
        folder, by_group = self.experiment.folder, {one.group: one for one in self.questions}
        stored = answered_items(folder) if (folder / ITEMS_FILE).is_file() else ()
        items = {item.item_id: item for item in stored}
        return [
            ReadRow(items.get(answer.item_id) or answer.item(by_group[answer.question]))
            for answer in self.guess(far)
        ]

    def require_keys(self) -> None:
        """InputError: a judge will be called, and the key for it is not set."""
        self.panel.require_keys(self.expected(), stored_rows(self.experiment.journal), self.options)

    def ask(self, budget: Budget) -> list[SystemAnswer]:
        """Every answer, by system; what a journal holds is not asked again."""
        return [
            answer
            for system, folder in self.systems
            for answer in system.answer(self.questions, self._asking(folder, budget))
        ]

    def judge(
        self, answers: Sequence[SystemAnswer], budget: Budget
    ) -> tuple[Panel, list[Measured], tuple[str, ...]]:
        """What the judges say of the answers, which are kept as items.

        Gives the panel without the columns that no answer has anything for, a row for each answer, and notes.
        """
        by_group = {one.group: one for one in self.questions}
        rows = [ReadRow(one.item(by_group[one.question])) for one in answers if one.answer is not None]
        write_json_lines(self.experiment.folder / ITEMS_FILE, (item_row(row.item) for row in rows))
        with open_journal(self.experiment.journal, self.options) as journal:
            panel, judged, notes = self.panel.judge(
                rows, journal=journal, options=self.options, budget=budget
            )
        measured = [
            panel.measured(by_group[one.question], one, judged.get(one.item_id, {})) for one in answers
        ]
        judgements = (row for one in measured for verdicts in one.verdicts.values() for row in verdicts.rows)
        return panel, measured, (*notes, *stored_notes(judgements))
