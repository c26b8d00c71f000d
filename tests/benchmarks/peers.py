"""Other judges' tools over the same server, each in an environment of its own: `ENV/bin/python peers.py ragas
...`.

Nothing of judgecal is imported here. Each runs its nearest equivalent of one LLM-judged rating an item; the
reply is read by the tool's own parser, which is why the server that `throughput.py` starts for it has another
text.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from importlib.metadata import version

QUESTION, ANSWER = "Which river runs through the town of item {}?", "The river Arn, as far as I know."
REFERENCE = "The Arn."

Run = Callable[[int, int], int]


def run_ragas(api_base: str) -> Run:
    """`ragas.evaluate` with `SimpleCriteriaScore`: one call an item."""
    from langchain_openai import ChatOpenAI
    from ragas import EvaluationDataset, RunConfig, SingleTurnSample, evaluate
    from ragas.llms import LangchainLLMWrapper
    from ragas.metrics import SimpleCriteriaScore

    llm = LangchainLLMWrapper(ChatOpenAI(model="stub-model", base_url=api_base, api_key="none"))

    def run(count: int, concurrency: int) -> int:
        samples = [
            SingleTurnSample(user_input=QUESTION.format(n), response=ANSWER, reference=REFERENCE)
            for n in range(count)
        ]
        settings = RunConfig(max_workers=concurrency) if concurrency else RunConfig()
        metric = SimpleCriteriaScore(name="correctness", definition="Rate the correctness, 0 to 5.", llm=llm)
        found = evaluate(
            EvaluationDataset(samples), metrics=[metric], run_config=settings, show_progress=False
        )
        return sum(score["correctness"] == 4 for score in found.scores)

    return run


def run_deepeval(api_base: str) -> Run:
    """`deepeval.evaluate` with `GEval` and its steps given: one call an item."""
    from deepeval import evaluate
    from deepeval.evaluate import AsyncConfig, CacheConfig, DisplayConfig
    from deepeval.metrics import GEval
    from deepeval.models import GPTModel
    from deepeval.test_case import LLMTestCase

    try:
        from deepeval.test_case import SingleTurnParams as Params
    except ImportError:
        from deepeval.test_case import LLMTestCaseParams as Params

    prices = {"cost_per_input_token": 0.0, "cost_per_output_token": 0.0}
    model = GPTModel(model="gpt-4o-mini", base_url=api_base, api_key="none", **prices)
    metric = GEval(
        name="correctness",
        evaluation_steps=["Rate how far the actual output agrees with the expected output."],
        evaluation_params=[Params.INPUT, Params.ACTUAL_OUTPUT, Params.EXPECTED_OUTPUT],
        model=model,
    )

    def run(count: int, concurrency: int) -> int:
        cases = [
            LLMTestCase(input=QUESTION.format(n), actual_output=ANSWER, expected_output=REFERENCE)
            for n in range(count)
        ]
        found = evaluate(
            cases,
            [metric],
            async_config=AsyncConfig(max_concurrent=concurrency) if concurrency else AsyncConfig(),
            display_config=DisplayConfig(show_indicator=False, print_results=False),
            cache_config=CacheConfig(write_cache=False),
        )
        return sum(
            data.score is not None for result in found.test_results for data in result.metrics_data or ()
        )

    return run


def main() -> int:
    """Measure one tool."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=("ragas", "deepeval"))
    parser.add_argument("--api-base", required=True)
    parser.add_argument("--n", type=int, default=500)
    parser.add_argument("--concurrency", type=int, default=0, help="0 leaves the tool's own")
    args = parser.parse_args()
    os.environ.update(RAGAS_DO_NOT_TRACK="true", DEEPEVAL_TELEMETRY_OPT_OUT="YES", OPENAI_API_KEY="none")
    run = {"ragas": run_ragas, "deepeval": run_deepeval}[args.name](args.api_base)
    run(8, args.concurrency)
    cpu, start = time.process_time(), time.perf_counter()
    done = run(args.n, args.concurrency)
    wall, cpu = time.perf_counter() - start, time.process_time() - cpu
    print(json.dumps({"done": done, "wall_s": wall, "cpu_s": cpu, "version": version(args.name)}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
