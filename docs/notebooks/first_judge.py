# A notebook in the percent format: Jupyter opens it with jupytext, VS Code and PyCharm as it is, and
# `python docs/notebooks/first_judge.py` runs it. It needs no key and no network, and works in a temporary folder.

# %% [markdown]
# # First judge
#
# Load a gold set, score judges, hold them against people, compare two of them, and say what share of new answers is
# right. The answers are those of a made-up museum's help desk; their labels are the project's own, not people's.

# %%
import os
import tempfile
from pathlib import Path

import judgecal
from judgecal.cli import run

START = Path(
    globals().get("__file__", "notebook")
).resolve()  # Jupyter names no file, and starts in its folder
EXAMPLES = next(
    folder / "examples" for folder in START.parents if (folder / "examples" / "answers.csv").exists()
)
os.chdir(tempfile.mkdtemp())
run(["init", "demo"])
os.chdir("demo")
columns = "--label rater_a --label rater_b"
table = [
    "gold",
    "import",
    str(EXAMPLES / "answers.csv"),
    "--as",
    "mine",
    "--scale",
    "binary",
    "--labels-by",
    "project",
]
run([*table, *columns.split()])

# %% [markdown]
# ## Load
#
# A set is split by question. Test is sealed: what follows works on the rest, which is called open.

# %%
gold = judgecal.load_gold("mine")
labels = {item.item_id: gold.labels.get(item.item_id) for item in gold.select("open")}
{"items": len(gold.items), "open": len(labels), "raters": gold.raters}

# %% [markdown]
# ## Score
#
# Two judges that call nobody. With a key in the environment, `correctness_v3@gemini-flash` is another one.

# %%
rows = {
    name: judgecal.score(name, gold, split="open") for name in ("correctness_v3@embedded", "token_f1@local")
}
rows["correctness_v3@embedded"].frame().head()

# %% [markdown]
# ## Agreement
#
# Each number comes with its interval, by question, and with what is missing from it.

# %%
groups = {item.item_id: item.group for item in gold.items}
found = {
    name: judgecal.agreement(
        [labels[row.item_id] for row in judged],
        [row.verdict for row in judged],
        scale=gold.scale,
        judge_scale="percentage",
        groups=[groups[row.item_id] for row in judged],
    )
    for name, judged in rows.items()
}
{name: one["macro_agreement"] for name, one in found.items()}

# %% [markdown]
# The same as the command has it, with the picture: each judge with its interval, the floor, and the raters.

# %%
run(
    [
        "score",
        "--gold",
        "mine",
        "--judge",
        "correctness_v3@embedded",
        "--judge",
        "token_f1@local",
        "--name",
        "first",
    ]
)
judgecal.load_report("first")

# %% [markdown]
# ## Compare
#
# Which of the two is better is a question about the difference on the same items.

# %%
judgecal.compare("first", "correctness_v3@embedded", "token_f1@local")

# %% [markdown]
# ## Choose, lock, and say what share is right

# %%
judgecal.select("first", name="chosen")
judgecal.load_report("chosen")

# %%
columns = judgecal.Columns("question", "answer", reference="reference")
judgecal.judge(EXAMPLES / "new_answers.csv", lock="judge.lock.json", output="judged.csv", columns=columns)

# %%
rate = judgecal.rate("judged.csv", lock="judge.lock.json", name="rated")
rate  # a result displays its headline and its table; load_report its page, with the pictures

# %%
rate.frame()

# %%
judgecal.load_report("rated")
