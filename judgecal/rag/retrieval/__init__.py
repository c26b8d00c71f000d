"""The retriever test: where the reference document ranks."""

from judgecal.rag.retrieval.corpus import Collection, Question, Run, collection_of_gold
from judgecal.rag.retrieval.result import RetrievalOptions, RetrievalResult, Tested, measure_retrieval
from judgecal.rag.retrieval.sources import (
    FileColumns,
    collection_of_files,
    load_repliqa,
    read_qrels,
    read_run,
)

__all__ = [
    "Collection", "FileColumns", "Question", "RetrievalOptions", "RetrievalResult", "Run", "Tested",
    "collection_of_files", "collection_of_gold", "load_repliqa", "measure_retrieval", "read_qrels",
    "read_run",
]  # fmt: skip
