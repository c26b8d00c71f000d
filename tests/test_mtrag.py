"""MTRAG's faithfulness: the recorded judges beside the raters, and the figures that are known of
them."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from tests.support.command import Run, one_object

# Computed from the same files with scipy and krippendorff: Pearson with the raters' mean, Spearman with their
# median.
KNOWN = {
    "faithfulness": {"ragas-faithfulness": 0.5709, "radbench-llm": 0.2935, "conditional-idk": 0.2656},
    "completeness": {"ragas-faithfulness": 0.4546, "radbench-llm": 0.2845, "conditional-idk": 0.2756},
}
OVERLAP = "faithfulness_overlap@local"
ALPHA = {"faithfulness": 0.4700, "completeness": 0.2635}


@pytest.mark.shared_data
@pytest.mark.parametrize("metric", KNOWN)
def test_the_known_figures(judgecal: Run, shared_data: Path, workspace_dir: Path, metric: str) -> None:
    folder = shared_data / "mtrag"
    ratings = pl.read_csv(folder / "ratings.csv").filter(pl.col("metric") == metric).drop("metric")
    people = [name for name in ratings.columns if name != "item_id"]
    items = pl.read_ndjson(folder / "items.jsonl").join(
        ratings, on="item_id", how="left", maintain_order="left"
    )
    items.write_ndjson(workspace_dir / "mtrag.jsonl")
    labels = [word for name in people for word in ("--label", name)]
    ran = judgecal("gold", "import", "mtrag.jsonl", "--as", "mtrag", "--col", "tag=answerability", *labels,
                   "--scale", "ordinal:1:4", "--json")  # fmt: skip
    done = one_object(ran)
    assert (done["n_items"], done["n_groups"], len(done["raters"])) == (477, 20, 7)
    assert "not taken over: turn" in ran.err
    reliability = one_object(judgecal("gold", "check", "mtrag", "--json"))["raters"]["reliability"]
    assert reliability["krippendorff_alpha"]["value"] == pytest.approx(ALPHA[metric], abs=5e-5)
    asked = ("--gold", "mtrag", "--split", "all", "--json")
    found = one_object(judgecal("agreement", "--judgements", folder / "judgements.csv", *asked))
    (overlap,) = one_object(judgecal("score", "--judge", OVERLAP, *asked))["judges"]
    assert found["gold"]["n_groups"] == 20 and found["headline"]["sentence"].endswith(".")
    assert any("percentage verdicts" in note and all(judge in note for judge in KNOWN[metric])
               for note in found["notes"]), "all three are read as fractions of 1"  # fmt: skip
    assert [one["judge"] for one in found["floor"]] == ["best constant", "correctness_v3@embedded"]
    assert (overlap["judge"], overlap["kind"], overlap["n_unscored"]) == (OVERLAP, "local", 0)
    floor = found["floor"][0]["calibrated"]["macro_agreement"]["high"]
    if metric == "faithfulness":  # counting words tracks people as well as the recorded judges do
        assert overlap["calibrated"]["macro_agreement"]["low"] > floor
        assert overlap["agreement"]["spearman"]["value"] == pytest.approx(0.618, abs=5e-4)
    for one in found["judges"]:
        assert (one["n"], one["n_unscored"]) == (477, 0)
        assert one["agreement"]["spearman"]["value"] == pytest.approx(KNOWN[metric][one["judge"]], abs=1e-4)
