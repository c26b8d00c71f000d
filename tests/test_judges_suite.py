"""Suites: what their files may hold, and the signatures of those that are shipped."""

from __future__ import annotations

from pathlib import Path

import pytest

from judgecal.errors import InputError
from judgecal.judges.suite import Suite, list_suites, load_suite
from judgecal.signatures import list_signatures, load_signature, unit_of
from judgecal.workspace import Workspace, find_workspace


@pytest.fixture
def workspace(workspace_dir: Path) -> Workspace:
    return find_workspace(workspace_dir)


def made(workspace: Workspace, text: str) -> Suite:
    (workspace.suites / "mine.toml").write_text(text)
    return load_suite("mine", workspace=workspace)


def test_the_mosaic_suite_has_the_judges_and_columns_of_agent_evaluation(workspace: Workspace) -> None:
    suite = load_suite("mosaic", workspace=workspace)
    found = {
        one.name: one.column_of("chunk" if one.name == "chunk_relevance" else "item") for one in suite.judges
    }
    assert found == {
        "correctness": "response/llm_judged/correctness",
        "correctness_facts": "response/llm_judged/correctness",
        "relevance_to_query": "response/llm_judged/relevance_to_query",
        "groundedness": "response/llm_judged/groundedness",
        "safety": "response/llm_judged/safety",
        "guideline_adherence": "response/llm_judged/guideline_adherence",
        "chunk_relevance": "retrieval/llm_judged/chunk_relevance",
        "context_sufficiency": "retrieval/llm_judged/context_sufficiency",
        "context_sufficiency_facts": "retrieval/llm_judged/context_sufficiency",
        "document_recall": "retrieval/ground_truth/document_recall",
    }
    assert suite.judges[0].lacks_model and str(suite.judges[0].judge_on("m")) == "mosaic/correctness@m"
    assert not suite.judges[-1].lacks_model and str(suite.judges[-1].judge_on("m")) == "document_recall@local"


def test_every_mosaic_signature_says_yes_or_no_after_its_rationale(workspace: Workspace) -> None:
    names = [name for name in list_signatures(workspace) if name.startswith("mosaic/")]
    assert len(names) == 9
    for name in names:
        signature = load_signature(name, workspace=workspace)
        assert (str(signature.scale), signature.words) == ("binary", ("yes", "no")), name
        assert list(signature.cls.output_fields) == ["rationale", "rating"], name
        assert len(signature.text.splitlines()) <= 60 and "judgecal" not in signature.text, name
    assert unit_of(load_signature("mosaic/chunk_relevance", workspace=workspace).inputs) == "chunk"


def test_a_suite_of_ones_own(workspace: Workspace) -> None:
    suite = made(
        workspace,
        'schema = 1\n[judges.tone]\njudge = "tone@embedded"\n[judges.chunks]\nlock = '
        '"experiments/x/judge.lock.json"\ncolumn = "mine"\naggregate = "precision"\n',
    )
    tone, chunks = suite.judges
    assert (tone.column_of("item"), tone.aggregate_of("item")) == ("response/llm_judged/tone", "rating")
    assert (tone.column_of("chunk"), tone.aggregate_of("chunk")) == ("retrieval/llm_judged/tone", "precision")
    assert (chunks.lock, chunks.column_of("chunk")) == (
        workspace.root / "experiments/x/judge.lock.json",
        "mine",
    )
    assert list_suites(workspace) == ["mine", *[name for name in list_suites(workspace) if name != "mine"]]
    assert load_suite(workspace.suites / "mine.toml", workspace=workspace) == suite


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[judges.a]\njudge = "x@y"\ncolunm = "z"\n', "unknown key 'colunm': did you mean column?"),
        ('[judge.a]\njudge = "x@y"\n', "unknown key 'judge': did you mean judges?"),
        ('[judges.a]\njudge = "x@y"\nlock = "z"\n', "judges.a: give either judge"),
        ("[judges.a]\n", "judges.a: give either judge"),
        ('[judges.a]\njudge = "@y"\n', "judges.a: '@y' is not a judge"),
        ('[judges.a]\njudge = ""\n', "judges.a: judge is empty"),
        ('[judges.a]\njudge = "x@y"\naggregate = "mean"\n', "must be one of rating, precision, share, found 'mean'"),
        ("[judges.a]\njudge = 3\n", "judges.a.judge: Input should be a valid string, found 3"),
        ("schema = 9\n", "schema 9 is newer"),
        ("schema = 1\n", "holds no judge"),
        ("judges = \n", "mine.toml"),
    ],
)  # fmt: skip
def test_a_suite_that_cannot_be_used(workspace: Workspace, text: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        made(workspace, text)
    assert message in str(error.value)
    assert "mine.toml" in str(error.value)


def test_every_problem_of_a_suite_is_listed(workspace: Workspace) -> None:
    with pytest.raises(InputError) as error:
        made(workspace, '[judges.a]\n[judges.b]\njudge = "x@"\n')
    assert len(error.value.problems) == 2


def test_an_unknown_suite_names_the_nearest(workspace: Workspace) -> None:
    with pytest.raises(InputError, match="unknown suite 'mosiac': did you mean mosaic"):
        load_suite("mosiac", workspace=workspace)
