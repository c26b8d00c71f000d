"""Scales: what a label means, how it is read, its stratum, and one scale on another."""

from __future__ import annotations

import pytest

from judgecal.errors import InputError
from judgecal.scale import Scale, common_scale, onto


@pytest.mark.parametrize(
    "text",
    [
        "percentage", "binary", "nominal", "ordinal:0:4", "ordinal:-2:2", "points:0:5", "points:0:5:0.5",
        "points:-1.5:1:0.25",
    ],
)  # fmt: skip
def test_a_scale_parses_and_prints_as_one_string(text: str) -> None:
    assert str(Scale.parse(text)) == text


def test_a_fraction_is_stored_as_a_percentage() -> None:
    scale = Scale.parse("fraction")
    assert (str(scale), scale.read("0.25"), scale.read(1)) == ("percentage", 25.0, 100.0)


WRONG: list[tuple[str, dict[str, float], str]] = [
    ("percent", {}, "unknown scale 'percent': use one of percentage, ordinal:MIN:MAX"),
    ("ordinal", {}, "unknown scale"),
    ("ordinal:0", {}, "unknown scale"),
    ("ordinal:0:4.5", {}, "unknown scale"),
    ("points:0", {}, "unknown scale"),
    ("points:0:5:2", {}, "STEP must be above 0 and go into MIN to MAX a whole number of times"),
    ("points:0:5:0", {}, "STEP must be above 0"),
    ("points:0:5:6", {}, "STEP must be above 0"),
    ("points:5:0:1", {}, "MIN must be below MAX"),
    ("ordinal:4:0", {}, "MIN must be below MAX"),
    ("ordinal:4:4", {}, "MIN must be below MAX"),
    ("percentage", {"pass_at": 101}, r"pass_at 101 lies outside 0\.\.100"),
    ("ordinal:1:5", {"pass_at": 0}, r"pass_at 0 lies outside 1\.\.5"),
    ("nominal", {"pass_at": 1}, "takes no pass_at"),
    ("percentage", {"step": 0}, "step 0 must be above 0"),
    ("ordinal:0:4", {"step": 5}, "at most 4"),
]


@pytest.mark.parametrize(("text", "more", "says"), WRONG)
def test_what_is_no_scale_is_explained(text: str, more: dict[str, float], says: str) -> None:
    with pytest.raises(InputError, match=says):
        Scale.parse(text, **more)


# scale, label as it came -> label
READ: list[tuple[str, object, float | str]] = [
    ("percentage", "85", 85.0),
    ("percentage", " 85 % ", 85.0),
    ("percentage", "85.5", 85.5),
    ("percentage", ".5", 0.5),
    ("percentage", "5.", 5.0),
    ("percentage", "1e2", 100.0),
    ("percentage", 0, 0.0),
    ("percentage", 100.0, 100.0),
    ("fraction", "0.1", 10.0),
    ("ordinal:0:4", "3", 3.0),
    ("ordinal:0:4", "3.0", 3.0),
    ("ordinal:-2:2", "-1", -1.0),
    ("points:0:5", "3.27", 3.27),
    ("points:0:5:0.5", "2.5", 2.5),
    ("points:0:1:0.1", "0.7", 0.7),
    *(("binary", word, 1.0) for word in ("yes", "TRUE", "Pass", "correct", "1", 1, 1.0, "100", 100, "100%", True)),
    *(("binary", word, 0.0) for word in ("no", "False", "fail", " incorrect ", "0", 0, 0.0, "0%", False)),
    ("nominal", " spam ", "spam"),
    ("nominal", 3, "3"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "label", "value"), READ)
def test_a_label_is_read(text: str, label: object, value: float | str) -> None:
    assert Scale.parse(text).read(label) == value


NO_LABEL: list[tuple[str, object, str]] = [
    ("percentage", "101", r"101 lies outside 0\.\.100"),
    ("percentage", "-1", "outside"),
    *(("percentage", word, "is not a number") for word in ("", "abc", "nan", "inf", "1e999", "1_0", "8 5", True, None)),
    ("fraction", "85", r"85 lies outside 0\.\.1"),
    ("fraction", "50%", "is not a number"),
    ("ordinal:0:4", "5", r"5 lies outside 0\.\.4"),
    ("ordinal:0:4", "2.5", "2.5 is not a whole number"),
    ("ordinal:0:4", "3%", "is not a number"),
    ("points:0:5:0.5", "2.4", "2.4 lies between the steps of 0.5"),
    ("points:0:5", "5.1", r"5.1 lies outside 0\.\.5"),
    *(("binary", word, "is none of yes/no") for word in ("", "maybe", "2", "50", "y")),
    ("nominal", "  ", "empty label"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "label", "says"), NO_LABEL)
def test_what_is_no_label_is_explained(text: str, label: object, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        Scale.parse(text).read(label)


def test_a_nominal_scale_of_known_words_takes_no_other() -> None:
    scale = Scale("nominal", 0.0, 0.0, categories=("a", "b"))
    assert scale.read("a") == "a"
    with pytest.raises(ValueError, match="'c' is none of a, b"):
        scale.read("c")


# scale, label -> stratum: min(2, floor(3 (y - min) / (max - min)))
STRATA = [
    ("percentage", 0.0, 0),
    ("percentage", 33.3, 0),
    ("percentage", 100.0 / 3.0, 1),  # exactly a third is the middle, whatever floating point makes of it
    ("percentage", 66.6, 1),
    ("percentage", 200.0 / 3.0, 2),
    ("percentage", 100.0, 2),
    ("binary", 0.0, 0),
    ("binary", 1.0, 2),
    ("ordinal:0:3", 0.0, 0),  # 3 x 0/3, 3 x 1/3, 3 x 2/3, min(2, 3)
    ("ordinal:0:3", 1.0, 1),
    ("ordinal:0:3", 2.0, 2),
    ("ordinal:0:3", 3.0, 2),
    ("ordinal:1:5", 2.0, 0),  # 3 x 1/4 = 0.75
    ("ordinal:1:5", 3.0, 1),  # 3 x 2/4 = 1.5
    ("ordinal:1:5", 4.0, 2),  # 3 x 3/4 = 2.25
    ("ordinal:-3:3", -1.0, 1),  # 3 x 2/6 = 1
]


@pytest.mark.parametrize(("text", "label", "stratum"), STRATA)
def test_a_label_lies_in_a_third_of_the_scale(text: str, label: float, stratum: int) -> None:
    assert Scale.parse(text).stratum(label) == stratum


@pytest.mark.parametrize(
    ("text", "label", "farthest"),
    [
        ("percentage", 80.0, 0.0),
        ("percentage", 20.0, 100.0),
        ("percentage", 50.0, 0.0),  # in the middle: the lower end
        ("binary", 1.0, 0.0),
        ("binary", 0.0, 1.0),
        ("ordinal:1:5", 3.0, 1.0),
        ("ordinal:1:5", 2.0, 5.0),
    ],
)
def test_the_farthest_verdict(text: str, label: float, farthest: float) -> None:
    assert Scale.parse(text).farthest(label) == farthest


# people, their pass mark, judge -> scale compared on, its mark
COMMON: list[tuple[str, float | None, str, str, float | None]] = [
    ("percentage", 75.0, "percentage", "percentage", 75.0),
    ("binary", None, "percentage", "percentage", 50.0),
    ("binary", 70.0, "percentage", "percentage", 70.0),
    ("binary", None, "ordinal:1:5", "ordinal:1:5", 3.0),  # 1 + 4 x 0.5
    ("binary", 75.0, "ordinal:1:5", "ordinal:1:5", 4.0),  # 1 + 4 x 0.75
    ("binary", None, "points:0:5", "points:0:5", 2.5),
    ("points:0:5:0.5", 3.0, "percentage", "points:0:5:0.5", 3.0),
    ("binary", None, "binary", "binary", None),
    ("percentage", None, "binary", "percentage", None),
    ("percentage", None, "ordinal:0:4", "percentage", None),
    ("ordinal:0:4", 3.0, "percentage", "ordinal:0:4", 3.0),
    ("nominal", None, "nominal", "nominal", None),
]


@pytest.mark.parametrize(("people", "mark", "judge", "common", "cut"), COMMON)
def test_two_scales_meet_on_one(
    people: str, mark: float | None, judge: str, common: str, cut: float | None
) -> None:
    found = common_scale(Scale.parse(people, pass_at=mark), Scale.parse(judge))
    assert (str(found), found.pass_at) == (common, cut)


@pytest.mark.parametrize(("people", "judge"), [("nominal", "percentage"), ("binary", "nominal")])
def test_words_without_order_meet_no_number(people: str, judge: str) -> None:
    with pytest.raises(InputError, match="they share no order"):
        common_scale(Scale.parse(people), Scale.parse(judge))


@pytest.mark.parametrize(
    ("target", "origin", "label", "mapped"),
    [
        ("percentage", "ordinal:1:5", 1.0, 0.0),
        ("percentage", "ordinal:1:5", 4.0, 75.0),
        ("percentage", "binary", 1.0, 100.0),
        ("ordinal:1:5", "percentage", 50.0, 3.0),
        ("ordinal:1:5", "binary", 0.0, 1.0),
        ("percentage", "percentage", 42.0, 42.0),
    ],
)
def test_a_label_is_taken_onto_another_scale_ends_to_ends(
    target: str, origin: str, label: float, mapped: float
) -> None:
    assert onto(Scale.parse(target), Scale.parse(origin), label) == pytest.approx(mapped)


def test_a_word_of_another_scale_names_that_scale() -> None:
    with pytest.raises(ValueError, match=r"'yes' is not a number, but a label of the scale binary"):
        Scale.parse("ordinal:1:5").read("yes")
