"""Documents cut into chunks of whole sentences, by a least and a largest size, with an overlap.

All of this looks at one document alone, so the chunks of a document, and their ids, are the same whatever
else is in the corpus.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict

from judgecal.errors import refuse
from judgecal.goldset import GoldDocument
from judgecal.goldset.wording import Span, sentence_spans


class ChunkOptions(BaseModel):
    """How documents are cut. Sizes are characters, without the white space at a chunk's ends."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    min: int | None = None  # characters that a chunk has before it may end, by default two thirds of `max`
    max: int = 1200  # characters of a chunk at most, but for its overlap; a longer sentence is cut
    overlap: int = 0  # characters of the sentences before a chunk that stand at its start too

    @property
    def least(self) -> int:
        """The characters that a chunk has before it may end."""
        return self.max * 2 // 3 if self.min is None else self.min

    def problems(self) -> list[str]:
        """What makes no chunks."""
        wanted = {
            f"min must be at least 0 characters, found {self.least}": self.least >= 0,
            f"max must be at least 1 character, found {self.max}": self.max >= 1,
            f"min must not be above max, found {self.least} and {self.max}": self.least <= self.max,
            f"overlap must be 0 to max ({self.max}) characters, found {self.overlap}": 0
            <= self.overlap
            <= self.max,
        }
        return [f"chunk: {problem}" for problem, holds in wanted.items() if not holds]


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a document; the characters of its chunks follow on each other."""

    chunk_id: str  # `document_id#n`, n from 1 in the order of the document
    document_id: str
    title: str | None
    start: int  # in the document's text, without the overlap
    end: int
    text: str  # with the overlap before it where there is one


def chunks_of(documents: Iterable[GoldDocument], options: ChunkOptions | None = None) -> list[Chunk]:
    """Cut documents into chunks, in their order; a document of white space alone has none.

    Every character of any other document stands in exactly one chunk, but for overlap.
    """
    options = options or ChunkOptions()
    refuse(options.problems())
    return [chunk for document in documents if document.text.strip() for chunk in _cut(document, options)]


def _cut(document: GoldDocument, options: ChunkOptions) -> Iterator[Chunk]:
    text, first = document.text, 0
    sentences = [piece for span in sentence_spans(text) for piece in _no_longer(text, span, options.max)]
    pieces = _joined(text, sentences)
    for number, last in enumerate(_ends_of_chunks(text, pieces, options), 1):
        lead = first
        while lead > 0 and pieces[first][0] - pieces[lead - 1][0] <= options.overlap:
            lead -= 1
        start, end = pieces[first][0], pieces[last][1]
        name = f"{document.document_id}#{number}"
        yield Chunk(name, document.document_id, document.title, start, end, text[pieces[lead][0] : end])
        first = last + 1


def _no_longer(text: str, span: Span, most: int) -> Iterator[Span]:
    """A sentence, cut between words, or within one that is longer itself, where it is longer than `most`."""
    start, end = span
    sentence = text[start:end]
    begin, stop = end - len(sentence.lstrip()), start + len(sentence.rstrip())
    while stop - begin > most:
        cut = begin + most
        if not text[cut].isspace():
            cut = next((place for place in range(cut - 1, begin, -1) if text[place].isspace()), cut)
        while text[cut].isspace():  # white space stays with what it stands behind
            cut += 1
        yield start, cut
        start = begin = cut
    yield start, end


def _joined(text: str, spans: Sequence[Span]) -> list[Span]:
    """Sentences, with those of white space alone added to the one before them, or to the first."""
    joined: list[Span] = []
    for start, end in spans:
        if joined and (not text[start:end].strip() or not text[slice(*joined[-1])].strip()):
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
    return joined


def _ends_of_chunks(text: str, pieces: Sequence[Span], options: ChunkOptions) -> Iterator[int]:
    """The number of the last sentence of each chunk."""

    def size(start: int, end: int) -> int:
        return len(text[start:end].strip())

    start = pieces[0][0]
    for number, (begin, end) in enumerate(pieces[1:], 1):
        if size(start, begin) >= options.least or size(start, end) > options.max:
            yield number - 1
            start = begin
    yield len(pieces) - 1
