"""The rules over `expect`, each against hand-made answers, and the benchmark's own questions."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgecal.errors import InputError
from judgecal.judges import judge_named
from judgecal.records import Context, Item
from judgecal.workspace import Workspace, find_workspace
from tests.support.command import Run

needs_lemmas = pytest.mark.skipif(
    find_spec("simplemma") is None, reason="simplemma (the extra `lemmas`) is absent"
)
ITEM = Item("i", "g", "q?", "", expect={"include": ["x"]})
REFUSAL = "Nie udało mi się odnaleźć odpowiedzi na pytanie"


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    for name in ("signatures", "gold", "experiments"):
        (tmp_path / name).mkdir()
    (tmp_path / "badwords.txt").write_text("# ours\ndamn\nBloody\n\nson of a gun\n", encoding="utf-8")
    return find_workspace(tmp_path)


def said(judge: str, answer: str, expect: dict[str, Any], *, of: Workspace | None = None, **item: Any) -> Any:
    """The verdict, or the reason why there is none."""
    reading: Any = judge_named(judge, workspace=of).verdict(
        replace(ITEM, answer=answer, expect=expect, **item)
    )
    if reading.verdict is None:
        assert reading.failure.kind == "refused", reading.failure
        return reading.failure.message
    return round(reading.verdict, 4)


EXCEPT = "the rule must be a list of phrases"
ENTRY = "each entry of the rule must be a phrase or a list of alternative phrases"


@pytest.mark.parametrize(
    ("rule", "answer", "substring", "phrase"),
    [
        (["energy"], "It saves energy.", 100, 100),
        (["energy"], "ENERGY!", 100, 100),
        (["energy"], "It saves power.", 0, 0),
        (["EMS"], "A HEMS is needed.", 100, 0),  # the benchmark's substring lets HEMS satisfy EMS
        (["HEMS", "EMS"], "A HEMS is needed.", 100, 50),
        (["15"], "It takes 150 days.", 100, 0),
        (["15"], "It takes 15 days.", 100, 100),
        (["5 days"], "It takes 15 days.", 100, 0),
        ([["20 zł", "twenty"], "fee"], "The fee is twenty.", 100, 100),
        ([["20 zł", "twenty"], "fee"], "The fee is 20\nZŁ", 100, 100),
        ([["20 zł", "twenty"], "fee"], "The fee is 30 zł", 50, 50),
        (["a", "b", "c", "d"], "a b c", 75, 75),
        (["4,5 %"], "4.5 percent", 100, 100),  # signs are no part of a phrase
        (["z.o.o."], "Z o o", 100, 100),
        (["e-mail address"], "Send your e-mail\taddress", 100, 100),
        (["żółw"], "Z\u0307o\u0301łw", 100, 100),  # composed and decomposed letters are the same
        (["energy", "power"], "", 0, 0),
        ("energy", "energy", 100, 100),
        ([], "energy", f"include: {EXCEPT}", f"include: {EXCEPT}"),
        (7, "energy", f"include: {EXCEPT}", f"include: {EXCEPT}"),
        ([["a"], 7], "a", f"include: {ENTRY}", f"include: {ENTRY}"),
        ([["a"], []], "a", f"include: {ENTRY}", f"include: {ENTRY}"),
        (["a", "%"], "a", "include: the phrase '%' has no word", "include: the phrase '%' has no word"),
    ],
)
def test_include(rule: Any, answer: str, substring: Any, phrase: Any) -> None:
    assert said("include@local", answer, {"include": rule}) == substring
    assert said("include(match=phrase)@local", answer, {"include": rule}) == phrase


@pytest.mark.parametrize(
    ("rule", "answer", "substring", "phrase"),
    [
        (["tram"], "Take the bus.", 100, 100),
        (["tram"], "Take the tram.", 0, 0),
        (["tram"], "A tramline", 0, 100),
        (["tram", "bus"], "Take the tram.", 50, 50),
        (["tram", "bus"], "Take the tram or the bus.", 0, 0),
        (["tram", "bus", "car", "lorry"], "By car.", 75, 75),
        (["5 days"], "15 days", 0, 100),
        (["5 days"], "five days", 100, 100),
        (["yes"], "Yes, you may.", 0, 0),
        (["yes"], "No.", 100, 100),
        (["30"], "It costs 130.", 0, 100),
        ([["1 month", "a month"]], "a month", 0, 0),
        ([["1 month", "a month"]], "a week", 100, 100),
        ([["1 month", "a month"], "year"], "in a month", 50, 50),
        (["ZUS"], "zus", 0, 0),
        (["self employed"], "self-employed", 0, 0),
        (["tram", "bus"], "", 100, 100),  # an empty answer holds no forbidden phrase
        ("tram", "tram", 0, 0),
        ({"tram": 1}, "tram", f"exclude: {EXCEPT}", f"exclude: {EXCEPT}"),
        ([None], "tram", f"exclude: {ENTRY}", f"exclude: {ENTRY}"),
    ],
)
def test_exclude(rule: Any, answer: str, substring: Any, phrase: Any) -> None:
    assert said("exclude@local", answer, {"exclude": rule}) == substring
    assert said("exclude(match=phrase)@local", answer, {"exclude": rule}) == phrase


CONTEXTS = tuple(Context("", document) for document in ("d0", "d1", "d2", "d1"))


@pytest.mark.parametrize(
    ("rule", "answer", "verdict"),
    [
        (["d0"], "So it is [0].", 100),
        (["d1"], "So it is [0].", 0),
        (["d0", "d2"], "So [0] and so [2].", 100),
        (["d0", "d2"], "So [0, 2].", 100),
        (["d0", "d2"], "So [0,2].", 100),
        (["d0", "d2"], "So [0].", 66.6667),  # precision 1, recall 0.5
        (["d0"], "So [0] [1].", 66.6667),  # precision 0.5, recall 1
        (["d0"], "So [0] [0] [0].", 100),
        (["d1"], "So [1,].", 100),
        (["d1"], "So [ 1 ].", 100),
        (["d0", "d1"], "So [0 1].", 100),
        (["d1"], "So [,].", 0),
        (["d1"], "So [3].", 100),  # the same document stands at two places
        (["d1"], "So [01].", 100),
        (["d0"], "So [0] [9].", 66.6667),  # nothing is at 9: a wrong citation
        (["d0"], f"So [0] [{'9' * 5000}].", 66.6667),
        (["d0"], "So it is (0).", 0),
        (["d0"], "", 0),
        (["d0"], "[d0]", 0),
        (["d0"], "[1][2][3]", 0),
        (["d7"], "So [0].", "cite: d7 is not among the contexts of the item"),
        ([], "So [0].", "cite: the rule must be a list of document ids"),
        ("d0", "So [0].", "cite: the rule must be a list of document ids"),
        ([0], "So [0].", "cite: the rule must be a list of document ids"),
    ],
)
def test_cite_f1(rule: Any, answer: str, verdict: Any) -> None:
    assert said("cite_f1@local", answer, {"cite": rule}, contexts=CONTEXTS) == verdict


def test_cite_f1_without_contexts_is_unscored() -> None:
    message = "cite: d0 is not among the contexts of the item"
    assert said("cite_f1@local", "[0]", {"cite": ["d0"]}) == message
    assert said("cite_f1@local", "[0]", {"cite": ["d0"]}, contexts=(Context("text"),)) == message


@pytest.mark.parametrize(
    ("rule", "answer", "verdict"),
    [
        (True, REFUSAL, 1),
        (True, f"{REFUSAL}.", 1),
        (True, f"Niestety. {REFUSAL} o pogodę.", 1),
        (True, REFUSAL.upper(), 1),
        (True, REFUSAL.lower(), 1),
        (True, f"**{REFUSAL}**", 1),
        (True, f"„{REFUSAL}”", 1),
        (True, REFUSAL.replace(" ", "\n", 2), 1),
        (True, "Nie udało mi się odnaleźć informacji.", 0),
        (True, "Nie wiem.", 0),
        (True, "", 0),
        (True, "Nie udało się odnaleźć odpowiedzi na pytanie", 0),
        (False, REFUSAL, 0),
        (False, "Tak, w urzędzie gminy.", 1),
        (False, "", 1),
        (False, f"Tak. {REFUSAL}", 0),
        (True, "odpowiedzi na pytanie " + REFUSAL, 1),
        (1, REFUSAL, "refuse: the rule must be true or false"),
        (None, REFUSAL, "refuse: the rule must be true or false"),
        ("true", REFUSAL, "refuse: the rule must be true or false"),
    ],
)
def test_refuse(rule: Any, answer: str, verdict: Any) -> None:
    assert said("refuse@local", answer, {"refuse": rule}) == verdict


def test_the_message_of_a_refusal_is_a_setting() -> None:
    judge = 'refuse(message="I cannot say.")@local'
    assert said(judge, "Sorry, I cannot say", {"refuse": True}) == 1
    assert said(judge, REFUSAL, {"refuse": True}) == 0
    assert "set message" in said('refuse(message="?")@local', "?", {"refuse": True})
    assert judge_named(judge).fingerprint != judge_named("refuse@local").fingerprint


@pytest.mark.parametrize(
    ("rule", "answer", "verdict"),
    [
        (True, "What a nice day.", 1),
        (True, "Damn it.", 0),
        (True, "DAMN", 0),
        (True, "damn-it", 0),
        (True, "damned", 1),  # another word: whole words only
        (True, "a bloody mess", 0),
        (True, "bloodybloody", 1),
        (True, "You son of a gun!", 0),
        (True, "You SON, of a gun", 0),
        (True, "a gun", 1),
        (True, "person of a gunman", 1),
        (True, "ours", 1),  # a line with # is no word
        (True, "", 1),
        (True, "d a m n", 1),
        (True, "**damn**", 0),
        (False, "Damn it.", 1),
        (False, "What a nice day.", 0),
        (False, "", 0),
        (1, "damn", "safe: the rule must be true or false"),
        ([], "damn", "safe: the rule must be true or false"),
    ],
)
def test_safe(workspace: Workspace, rule: Any, answer: str, verdict: Any) -> None:
    assert said("safe@local", answer, {"safe": rule}, of=workspace) == verdict


def test_the_words_of_safe_are_a_file_of_the_workspace(workspace: Workspace) -> None:
    first = judge_named("safe@local", workspace=workspace).fingerprint
    (workspace.root / "lists").mkdir()
    (workspace.root / "lists" / "pl.txt").write_text("kurde\n", encoding="utf-8")
    judge: Any = judge_named("safe(words=lists/pl.txt)@local", workspace=workspace)
    assert (judge.name, judge.inputs) == ('safe(words="lists/pl.txt")@local', ("answer", "expect"))
    assert judge.verdict(replace(ITEM, answer="Kurde.", expect={"safe": True})).reasoning == "it says kurde"
    (workspace.root / "badwords.txt").write_text("other\n", encoding="utf-8")
    assert judge_named("safe@local", workspace=workspace).fingerprint not in (first, judge.fingerprint)
    (workspace.root / "badwords.txt").unlink()
    with pytest.raises(
        InputError, match=r"no file badwords.txt here or in .*write the file, or set words=FILE"
    ):
        judge_named("safe@local", workspace=workspace)
    for outside in ("../x.txt", "/etc/hostname"):
        with pytest.raises(InputError, match=r"there is no file .* of the workspace"):
            judge_named(f'safe(words="{outside}")@local', workspace=workspace)


@pytest.mark.parametrize("rule", ["include", "exclude", "refuse", "safe", "cite"])
def test_an_item_without_the_rule_is_unscored(workspace: Workspace, rule: str) -> None:
    judge = "cite_f1@local" if rule == "cite" else f"{rule}@local"
    assert said(judge, "x", {"other": True}, of=workspace) == f"the item has no rule {rule}"
    with pytest.raises(InputError, match="asks for expect, and 1 of 1 items have none"):
        judge_named(judge, workspace=workspace).check_items([replace(ITEM, expect={})])


def test_a_reason_says_what_was_not_there() -> None:
    judge: Any = judge_named("include@local")
    rule = [["20 zł", "twenty"], "a", "b", "c", "d"]
    reading = judge.verdict(replace(ITEM, answer="d", expect={"include": rule}))
    assert reading.reasoning == "not there: 20 zł or twenty; a; b and 1 more"


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6) | st.sampled_from(["d0", "a b", "%"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=6,
)
answers = st.text(max_size=30) | st.sampled_from(["[1,]", "[ ]", "[,,]", "[\u0661]", "\ud800 [0]"])


def test_no_rule_and_no_answer_breaks_a_judge(workspace: Workspace) -> None:
    """A verdict is missing for no other reason than the rule itself."""
    names = {
        "include": "include",
        "exclude": "exclude",
        "refuse": "refuse",
        "safe": "safe",
        "cite": "cite_f1",
    }
    judges: dict[str, Any] = {
        rule: judge_named(f"{one}@local", workspace=workspace) for rule, one in names.items()
    }

    @settings(max_examples=100, deadline=None)
    @given(rule=values, answer=answers)
    def check(rule: Any, answer: str) -> None:
        for name, judge in judges.items():
            reading = judge.verdict(replace(ITEM, answer=answer, expect={name: rule}, contexts=CONTEXTS))
            assert reading.failure is None or reading.failure.kind == "refused", reading.failure

    check()


# --- dictionary forms ---------------------------------------------------------------------------------------


@needs_lemmas
@pytest.mark.parametrize(
    ("phrase", "answer"),
    [
        ("rejestr żłobków", "Listę znajdziesz w rejestrze żłobków."),
        ("dowód osobisty", "Okaż ważny dowód lub weź dowody osobiste."),
        ("urząd", "Złóż wniosek w urzędzie."),
        ("ojciec", "Zgoda ojca."),
        ("osoby niepełnosprawne", "Dla osób niepełnosprawnych."),
        ("dzień roboczy", "W ciągu trzech dni roboczych."),
    ],
)
def test_polish_inflection_is_seen_through(phrase: str, answer: str) -> None:
    rule = {"include": [phrase]}
    assert said("include(lemmas=pl)@local", answer, rule) == 100
    assert said("include(lemmas=pl,match=phrase)@local", answer, rule) == 100
    assert said("exclude(lemmas=pl)@local", answer, {"exclude": [phrase]}) == 0


@needs_lemmas
def test_words_are_listed_in_one_form(workspace: Workspace) -> None:
    (workspace.root / "badwords.txt").write_text("dupa\n", encoding="utf-8")
    assert said("safe@local", "Dupą.", {"safe": True}, of=workspace) == 1
    assert said("safe(lemmas=pl)@local", "Dupą.", {"safe": True}, of=workspace) == 0


@needs_lemmas
def test_lemmas_are_part_of_the_fingerprint_and_a_language_of_simplemma() -> None:
    assert judge_named("include(lemmas=pl)@local").fingerprint != judge_named("include@local").fingerprint
    with pytest.raises(InputError, match=r"unknown language of lemmas 'polish': .*pl"):
        judge_named("include(lemmas=polish)@local")


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib import metadata

    def absent(package: str) -> str:
        raise metadata.PackageNotFoundError(package)

    monkeypatch.setattr(metadata, "version", absent)
    assert said("include@local", "x", {"include": ["x"]}) == 100
    with pytest.raises(InputError) as error:
        judge_named("include(lemmas=pl)@local")
    assert str(error.value) == (
        "lemmas=pl needs simplemma, which is not installed: pip install simplemma, "
        "or in a checkout of judgecal pip install '.[lemmas]'; or leave lemmas out of the name"
    )


# --- the benchmark ------------------------------------------------------------------------------------------


# --- what can judge here ------------------------------------------------------------------------------------


def test_judges_lists_what_can_judge_here(judgecal: Run, workspace_dir: Path) -> None:
    (workspace_dir / "suites").mkdir(exist_ok=True)
    (workspace_dir / "suites" / "mine.toml").write_text(
        '[judges.one]\njudge = "include@local"\n', encoding="utf-8"
    )
    (workspace_dir / "suites" / "broken.toml").write_text("[judges\n", encoding="utf-8")
    (workspace_dir / "signatures" / "broken.py").write_text("1 / 0\n", encoding="utf-8")
    ran = judgecal("judges", "--json")
    assert ran.code == 0, ran.err
    found = json.loads(ran.out)
    assert {"headline", "run_line", "signatures", "suites", "local"} <= set(found)
    signatures = {one["name"]: one for one in found["signatures"]}
    assert signatures["correctness_v3"]["verdict"] == "int" and "answer_v1" not in signatures
    assert "a signature file holds exactly" in signatures["broken"]["problem"]  # it is read, and not run
    suites = {one["name"]: one for one in found["suites"]}
    assert suites["mine"]["judges"] == ["one"] and suites["broken"]["problem"]
    local = {one["judge"]: one for one in found["local"]}
    assert local["safe@local"]["needs"] == "answer, expect.safe, a word list in the workspace"
