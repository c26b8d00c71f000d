"""The retriever test: where the reference document ranks."""

from judgecal.rag.retrieval.collection import (
    Collection,
    Query,
    collection_of_files,
    collection_of_gold,
    read_qrels,
)
from judgecal.rag.retrieval.ranking import Run, read_run
from judgecal.rag.retrieval.result import RetrievalOptions, RetrievalResult, measure_retrieval

__all__ = [
    "Collection",
    "Query",
    "RetrievalOptions",
    "RetrievalResult",
    "Run",
    "collection_of_files",
    "collection_of_gold",
    "measure_retrieval",
    "read_qrels",
    "read_run",
]  # fmt: skip
