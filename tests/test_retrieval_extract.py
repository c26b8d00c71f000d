"""Documents in files: their text, and a word on each file that has none."""

from __future__ import annotations

import io
import random
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest

from judgecal.errors import InputError
from judgecal.rag.retrieval import collection_of_files
from judgecal.rag.retrieval.extract import NoTextError, extract


def pdf(path: Path, *pages: str, password: str | None = None) -> Path:
    """A PDF with a line of text on each page."""
    pypdf = pytest.importorskip("pypdf")
    from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject

    writer = pypdf.PdfWriter()
    for text in pages:
        page = writer.add_blank_page(300, 300)
        if text:
            names = {"/Type": "/Font", "/Subtype": "/Type1", "/BaseFont": "/Helvetica"}
            font = DictionaryObject({NameObject(key): NameObject(value) for key, value in names.items()})
            fonts = DictionaryObject({NameObject("/F1"): writer._add_object(font)})
            page[NameObject("/Resources")] = DictionaryObject({NameObject("/Font"): fonts})
            stream = DecodedStreamObject()
            stream.set_data(f"BT /F1 12 Tf 20 200 Td ({text}) Tj ET".encode())
            page[NameObject("/Contents")] = writer._add_object(stream)
    if password is not None:
        writer.encrypt(password, "owner", algorithm="RC4-128")
    writer.write(path)
    return path


def docx(path: Path, *paragraphs: str, table: tuple[tuple[str, str], ...] = ()) -> Path:
    """A DOCX of paragraphs and a table behind them."""
    document: Any = pytest.importorskip("docx").Document()
    for text in paragraphs:
        document.add_paragraph(text)
    if table:
        made = document.add_table(len(table), 2)
        for row, cells in enumerate(table):
            for column, text in enumerate(cells):
                made.cell(row, column).text = text
    document.save(path)
    return path


def html(path: Path, source: str, encoding: str = "utf-8") -> Path:
    path.write_bytes(source.encode(encoding))
    return path


def test_html_is_what_a_reader_sees(tmp_path: Path) -> None:
    page = (
        "<!doctype html><head><title>Trams &amp;\n boats</title><style>p {}</style><script>if (a<b) "
        "'x'</script><body><h1>To the  harbour</h1><p>Line <b>1</b>8<br>every "
        "hour.</p><ul><li>One<li>Two</ul><!-- no --><svg><title>icon</title></svg><table><tr><td>Fare<td>2 "
        "&euro;</table>"
    )
    found = extract(html(tmp_path / "a.html", page))
    assert found.title == "Trams & boats"
    assert found.text == "To the harbour\n\nLine 18\nevery hour.\n\nOne\nTwo\n\nFare 2 €"


def test_html_is_read_in_the_encoding_that_it_declares(tmp_path: Path) -> None:
    assert extract(html(tmp_path / "a.htm", '<meta charset="iso-8859-1"><p>Größe', "latin-1")).text == "Größe"
    assert extract(html(tmp_path / "b.htm", '<meta charset="zip"><p>Größe')).text == "Größe"
    with pytest.raises(InputError, match=r"c\.htm"):
        extract(html(tmp_path / "c.htm", "<p>Größe", "latin-1"))


def test_a_pdf_gives_its_pages_in_order(tmp_path: Path) -> None:
    assert extract(pdf(tmp_path / "a.pdf", "The tram leaves", "at noon.")).text == "The tram leaves\nat noon."
    assert extract(pdf(tmp_path / "b.PDF", "No password to read", password="")).text == "No password to read"


def test_a_docx_gives_paragraphs_tables_and_changes(tmp_path: Path) -> None:
    path = docx(tmp_path / "a.docx", "The tram\tleaves.", "At noon.", table=(("Fare", "2 €"),))
    assert extract(path).text == "The tram\tleaves.\n\nAt noon.\n\nFare\n2 €".replace("\n\nFare", "\nFare")
    inserted = io.BytesIO()
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(inserted, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name == "word/document.xml":
                data = data.replace(
                    b"<w:t>At noon.</w:t></w:r>",
                    b"<w:t>At </w:t></w:r><w:del><w:r><w:delText>one</w:delText></w:r></w:del>"
                    b"<w:ins><w:r><w:t>two.</w:t></w:r></w:ins>",
                )
            new.writestr(name, data)
    path.write_bytes(inserted.getvalue())
    assert "At two." in extract(path).text and "one" not in extract(path).text


def test_a_file_without_text_says_why(tmp_path: Path) -> None:
    with pytest.raises(NoTextError, match="encrypted PDF: save it without a password"):
        extract(pdf(tmp_path / "a.pdf", "secret", password="key"))
    with pytest.raises(NoTextError, match="PDF without text, perhaps scanned"):
        extract(pdf(tmp_path / "b.pdf", "", ""))
    whole = pdf(tmp_path / "c.pdf", "The tram leaves").read_bytes()
    for name, data in (("d.pdf", b""), ("e.pdf", b"no pdf"), ("f.pdf", b"%PDF-1.7\n" + whole[200:260])):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(NoTextError, match="broken PDF"):
            extract(tmp_path / name)
    with pytest.raises(NoTextError, match="DOCX without text"):
        extract(docx(tmp_path / "g.docx"))
    packed = docx(tmp_path / "h.docx", "The tram").read_bytes()
    for name, data, message in (
        ("i.docx", b"", "broken DOCX"), ("j.docx", packed[:-200], "broken DOCX"),
        ("k.docx", b"\xd0\xcf\x11\xe0" + bytes(600), "encrypted DOCX, or an old DOC"),
    ):  # fmt: skip
        (tmp_path / name).write_bytes(data)
        with pytest.raises(NoTextError, match=message):
            extract(tmp_path / name)


def test_a_folder_of_documents_counts_those_without_text(tmp_path: Path) -> None:
    folder = tmp_path / "manuals"
    folder.mkdir()
    pdf(folder / "a.pdf", "The tram leaves")
    pdf(folder / "b.pdf", "")
    pdf(folder / "c.pdf", "secret", password="key")
    pdf(folder / "d.pdf", "secret", password="key")
    html(folder / "e.html", "<title>Boats</title><p>At noon")
    (folder / "f.md").write_text("# Bread\n")
    (folder / "g.png").write_bytes(b"\x89")
    found = collection_of_files(folder, None)
    assert [(one.document_id, one.title, one.text) for one in found.documents or ()] == [
        ("a", None, "The tram leaves"), ("e", "Boats", "At noon"), ("f", None, "# Bread\n"),
    ]  # fmt: skip
    assert [note.replace(str(folder), "F").partition("F ")[2] for note in found.notes] == [
        "are not in the corpus: PDF without text, perhaps scanned: run text recognition (OCR) over it first "
        "(b.pdf)",
        "are not in the corpus: encrypted PDF: save it without a password (c.pdf, d.pdf)",
        "are not documents (.txt, .text, .md, .html, .htm, .pdf, .docx), so we skipped them: g.png",
    ]
    assert found.notes[1].startswith("2 of 7 files of ")


def test_one_file_is_a_corpus_too(tmp_path: Path) -> None:
    found = collection_of_files(html(tmp_path / "a.html", "<p>At noon"), None)
    assert [(one.document_id, one.text) for one in found.documents or ()] == [("a", "At noon")]
    with pytest.raises(InputError, match=r"b\.pdf: PDF without text"):
        collection_of_files(pdf(tmp_path / "b.pdf", ""), None)


def test_a_reader_that_is_not_installed_is_named_with_how_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("pypdf", "docx"):
        monkeypatch.setitem(__import__("sys").modules, name, None)
    for name in ("a.pdf", "b.pdf", "c.docx"):
        (tmp_path / name).write_bytes(b"")
    with pytest.raises(InputError) as refused:
        collection_of_files(tmp_path, None)
    assert refused.value.problems == (
        "PDF files are read by pypdf, which is not installed: pip install pypdf, or in a checkout of "
        "judgecal pip install '.[documents]'",
        "DOCX files are read by python-docx, which is not installed: pip install python-docx, or in a "
        "checkout of judgecal pip install '.[documents]'",
    )


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("<![x]>", ""), ("a <![foo[ b", "a"), ("<![>x", "x"), ("", ""), ("\0", "\ufffd"), ("a<b", "a"),
        ("1 < 2 & 3", "1 < 2 & 3"),
        ("<!--" * 200_000, ""), ("<?" * 200_000, ""), ("</" * 200_000, ""), ("<a " * 200_000, ""),
        ("<p>x" * 50_000, "x\n\n" * 49_999 + "x"), ("<title>" * 100_000, ""), ("<script>" * 100_000, ""),
        ("<td" + "".join(f" x{k}=1" for k in range(50_000)) + ">y", "y"),
        ("<div>" * 900 + "</p>" * 50_000 + "end", "end"),
        ('<meta charset="utf-7"><p>+2AA-x', "+2AA-x"), ('<meta charset="punycode"><p>' + "a" * 99_999, "a" * 99_999),
    ],
)  # fmt: skip
def test_any_html_is_read_at_once(tmp_path: Path, page: str, text: str) -> None:
    start = time.monotonic()
    assert extract(html(tmp_path / "a.html", page)).text.replace("\ufffd", "") == text.replace("\ufffd", "")
    assert time.monotonic() - start < 60.0


@pytest.mark.parametrize(
    "page", ["<svg>" * 100_000 + "</p>" * 100_000, "<b><i>" * 100_000, "<table>" * 100_000]
)
def test_html_without_a_bottom_is_a_note(tmp_path: Path, page: str) -> None:
    start = time.monotonic()
    with pytest.raises(NoTextError, match="HTML with over 2,000 elements in one another: save it as text"):
        extract(html(tmp_path / "a.html", page))
    assert time.monotonic() - start < 60.0


def test_a_file_may_be_so_long_and_take_so_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = html(tmp_path / "a.html", "<p>x" * 100_000)
    monkeypatch.setattr("judgecal.rag.retrieval.extract._MOST_CHARACTERS", 1000)
    with pytest.raises(NoTextError, match="HTML of over 1,000 characters: split it"):
        extract(page)
    monkeypatch.undo()
    monkeypatch.setattr("judgecal.rag.retrieval.extract._MOST_SECONDS", 0.0)
    with pytest.raises(NoTextError, match="HTML that takes over 0 s to read"):
        extract(page)
    with pytest.raises(NoTextError, match="PDF that takes over 0 s to read"):
        extract(pdf(tmp_path / "b.pdf", "one", "two"))


PIECES = (
    "<", ">", "</", "<!", "<![", "]]>", "<!--", "-->", "<?", "?>", "<svg>", "</svg>", "<title>", "</p>", "<p>", "<b>",
    "<table>", "<td>", "</table>", "<script>", "</script>", "<select>", "<br/>", "</br>", "<template>", "<math>", "&",
    "&#x", ";", "&#55357;", "=", "'", '"', " ", "\0", "\x0c", "a", "é", "\U0001f642", "<a href=", "<!doctype", "<html",
    "<meta charset=", "</html>", "<body>", "</body>", "<form>", "<textarea>", "<iframe>", "<noscript>", "<plaintext>",
)  # fmt: skip


def test_no_soup_of_html_ends_otherwise_than_in_a_text(tmp_path: Path) -> None:
    rng = random.Random(5)
    for _ in range(1500):
        page = "".join(rng.choices(PIECES, k=rng.randrange(1, 60)))
        try:
            found = extract(html(tmp_path / "a.html", page))
        except (NoTextError, InputError):
            continue
        assert found.text.encode() is not None and "\0" not in found.text, repr(page)
