"""What a local pipeline is made of, as its table in the configuration has it.

chunk = { max = 512, similar = 0.25 }      # characters; min is two thirds of max where it is left out
index = "bm25"                             # or lsa, lsa:DIMENSIONS
strategy = "rerank"                        # plain, rerank, parent, both
top_k = 10                                 # what the reranker is given
top_n = 3                                  # what the answerer is given
reranker = "mosaic/chunk_relevance@embedded"
answerer = { signature = "answer_v1", model = "embedded", temperature = 0.2 }
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from judgecal.errors import InputError
from judgecal.rag.retrieval.chunking import ChunkOptions
from judgecal.rag.retrieval.indexes import check_index

Strategy = Literal["plain", "rerank", "parent", "both"]
Children = Literal["sentences", "summaries"]
Many = Annotated[int, Field(ge=1, le=10_000)]
_TABLE = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class ChunkConfig(BaseModel):
    """How documents are cut, as `ChunkOptions` has it; `min` is two thirds of `max` where it is left out."""

    model_config = _TABLE
    min: int | None = None
    max: int = 1200
    similar: float = 0.25
    overlap: int = 0
    sentences: str = "plain"

    @property
    def options(self) -> ChunkOptions:
        """The same, for the function that cuts."""
        least = self.max * 2 // 3 if self.min is None else self.min
        return ChunkOptions(least, self.max, self.similar, self.overlap, self.sentences)


class AnswererConfig(BaseModel):
    """Who answers; without a temperature that of the model's alias holds."""

    model_config = _TABLE
    signature: str = "answer_v1"
    model: str = "embedded"
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None


class LocalConfig(BaseModel):
    """The table of a local pipeline; at the top of this module is one.

    Attributes:
        index: as `judgecal.rag.retrieval.indexes.index_named` takes it, or `embed:MODEL`, an alias or a
            litellm id.
        tokenizer: which words `bm25` and `lsa` see.
        strategy: `plain`: the index's best chunks. `rerank`: the best of those that the index gives, by the
            reranker. `parent`: the chunks whose children the index finds best. `both`: those whose children
            the reranker puts first, of each chunk its best child by the index.
        top_k: chunks that the reranker is given, of `rerank` and `both`.
        top_n: chunks that the answerer is given.
        reranker: a judge of single contexts, `SIGNATURE@MODEL`, or the alias or litellm id of a reranking
            model; what is equal to it stays in the order of the index.
        children: of `parent` and `both`, what is searched: the sentences of a chunk, or its summary by the
            answerer's model; the embedded model writes none, and there it is the leading sentence.
    """

    model_config = _TABLE
    chunk: ChunkConfig = ChunkConfig()
    index: str = "bm25"
    tokenizer: str = "words"
    strategy: Strategy = "plain"
    top_k: Many = 10
    top_n: Many = 3
    reranker: str = "mosaic/chunk_relevance@embedded"
    children: Children = "sentences"
    answerer: AnswererConfig = AnswererConfig()

    @property
    def reranks(self) -> bool:
        """Whether a reranker has a say."""
        return self.strategy in ("rerank", "both")

    @property
    def searches_children(self) -> bool:
        """Whether parts of a chunk are searched in its place."""
        return self.strategy in ("parent", "both")

    def problems(self) -> Iterator[str]:
        """What of the settings makes no pipeline, one message each."""
        for check in (self.chunk.options.check, lambda: check_index(self.index, tokenizer=self.tokenizer)):
            try:
                check()
            except InputError as error:
                yield from error.problems
        if self.reranks and self.top_n > self.top_k:
            yield (
                "top_n must not be above top_k, which the reranker chooses from: "
                f"found {self.top_n} and {self.top_k}"
            )
