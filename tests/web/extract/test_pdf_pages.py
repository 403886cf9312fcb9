"""Text extraction from PDFs."""

from __future__ import annotations

import io
import time

import pytest
from pypdf import PdfReader, PdfWriter
from pypdf.generic import DictionaryObject, NameObject, StreamObject

from centgate.web.extract.content_type import Unreadable
from centgate.web.extract.extract import extract_page
from centgate.web.extract.pdf import MAX_CHARACTERS, convert_pdf


def build_pdf(
    *pages: str, info: str = "/Title (A paper) /Author (Jane Roe) /CreationDate (D:20240506070809Z)"
) -> bytes:
    """Return a PDF with a few lines of text on each page."""
    streams = (
        f"BT /F1 12 Tf 14 TL 72 720 Td {' '.join(f'({line}) Tj T*' for line in page.split(chr(10)))} ET"
        if page
        else ""
        for page in pages
    )
    return build_drawn_pdf(*streams, info=info)


def build_drawn_pdf(*streams: str, info: str = "") -> bytes:
    """Return a PDF whose pages have these contents."""
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        "",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        f"<< {info} >>",
    ]
    kids: list[str] = []
    for stream in streams:
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {len(objects)} 0 R "
            "/Resources << /Font << /F1 3 0 R >> >> >>"
        )
        kids.append(f"{len(objects)} 0 R")
    objects[1] = f"<< /Type /Pages /Kids [{' '.join(kids)}] /Count {len(kids)} >>"
    body, offsets = b"%PDF-1.4\n", list[int]()
    for number, each in enumerate(objects, 1):
        offsets.append(len(body))
        body += f"{number} 0 obj\n{each}\nendobj\n".encode()
    table = "".join(f"{offset:010} 00000 n \n" for offset in offsets)
    size = len(objects) + 1
    end = f"xref\n0 {size}\n0000000000 65535 f \n{table}trailer\n<< /Size {size} /Root 1 0 R /Info 4 0 R >>"
    return body + f"{end}\nstartxref\n{len(body)}\n%%EOF".encode()


def encrypt_pdf(body: bytes, password: str) -> bytes:
    """Return the same PDF, encrypted with a password."""
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(body)))
    writer.encrypt(password, "owner")
    written = io.BytesIO()
    writer.write(written)
    return written.getvalue()


def test_pdf_has_text_of_its_pages() -> None:
    page = extract_page(
        build_pdf("First line\nsecond line of hyphe-\nnated text", "# Next page"),
        "application/pdf",
        "https://e.org/a.pdf",
        only_main_content=True,
    )

    assert page.markdown == "First line\nsecond line of hyphenated text\n\n\\# Next page"
    assert (page.metadata.title, page.metadata.author) == ("A paper", "Jane Roe")
    assert page.metadata.published == "2024-05-06T07:08:09+00:00"


def test_pdf_with_empty_password_is_read() -> None:
    assert convert_pdf(encrypt_pdf(build_pdf("Some text"), ""))[0] == "Some text"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (encrypt_pdf(build_pdf("Some text"), "secret"), "locked with a password"),
        (build_pdf("", ""), "its pages are images"),
        (b"%PDF-1.4\nbroken", "broken"),
        (b"%PDF-1.4\n" + b"<<" * 100_000, "broken"),
        (build_pdf("Some text")[:300], "broken"),
    ],
)
def test_pdf_without_text_is_explained(body: bytes, message: str) -> None:
    with pytest.raises(Unreadable, match=message):
        convert_pdf(body)


def add_image_page(writer: PdfWriter, content: bytes) -> None:
    """Add a page with an image of one pixel among its resources, as a scanner makes it."""
    image = StreamObject()
    image[NameObject("/Type")], image[NameObject("/Subtype")] = NameObject("/XObject"), NameObject("/Image")
    page = writer.add_blank_page(612, 792)
    reference = writer._add_object(image)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - no public way
    images = DictionaryObject({NameObject("/Scan"): reference})
    page[NameObject("/Resources")] = DictionaryObject({NameObject("/XObject"): images})
    drawing = StreamObject()
    drawing.set_data(content)
    page[NameObject("/Contents")] = writer._add_object(drawing)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]


def test_pages_that_draw_images_alone_are_counted() -> None:
    writer, written = PdfWriter(clone_from=io.BytesIO(build_pdf("A page with text", ""))), io.BytesIO()
    for content in (b"q 612 0 0 792 0 0 cm /Scan Do Q", b"/Scan Do", b"q Q"):
        add_image_page(writer, content)
    writer.write(written)

    text, _, warnings = convert_pdf(written.getvalue())

    assert text == "A page with text"
    assert warnings == ("on 2 of the PDF's pages there are images and no text: text in images is not read",)


def test_broken_image_does_not_cost_text() -> None:
    writer, written = PdfWriter(clone_from=io.BytesIO(build_pdf("A page with text"))), io.BytesIO()
    add_image_page(writer, b"/CS /Foo /CS /Foo BI /W 1 /H 1 ")
    writer.write(written)

    assert convert_pdf(written.getvalue())[0] == "A page with text"


@pytest.mark.extended
def test_page_cut_at_limit_is_named() -> None:
    line = "All the words of a long line of a very long page"
    pdf = build_pdf("\n".join([line] * (MAX_CHARACTERS // len(line) + 1)))

    page = extract_page(pdf, "application/pdf", "https://e.org/a.pdf", only_main_content=True)

    assert len(page.markdown) <= MAX_CHARACTERS < page.length
    assert "the rest cannot be read" in page.warnings[0]


@pytest.mark.extended
def test_only_first_pages_of_long_pdf_are_read() -> None:
    text, _, warnings = convert_pdf(build_pdf(*(f"Page {number}" for number in range(230))))

    assert text.endswith("Page 199")
    assert warnings == ("only the first 200 of the PDF's 230 pages were read",)


def draw_rows(*rows: tuple[str, ...], top: int = 600, step: int = 14) -> str:
    """Return the contents of a page with a table: cells of numbers end at the right of their column."""
    drawn: list[str] = []
    for number, row in enumerate(rows):
        for column, text in enumerate(row):
            shift = 40 - 6 * len(text) if text[:1].isdigit() else 0
            x, y = 72 + 90 * column + shift, top - step * number
            drawn.append(f"BT /F1 10 Tf 1 0 0 1 {x} {y} Tm ({text}) Tj ET" if text else "")
    return "\n".join(drawn)


ABOVE = (
    "BT /F1 10 Tf 72 650 Td (The prices hold for the first quarter of the year, and include no tax.) Tj ET "
)
HEADER = ("Item", "Jan", "Feb", "Mar")


@pytest.mark.parametrize("step", [14, 22])
def test_empty_cells_of_table_are_kept(step: int) -> None:
    rows = [
        HEADER,
        ("Oak", "10", "", "12"),
        ("Ash", "", "7", "8"),
        ("Elm", "1", "2", "3"),
        ("", "", "", "25"),
    ]

    text = convert_pdf(build_drawn_pdf(ABOVE + draw_rows(*rows, step=step)))[0]

    assert text == (
        "The prices hold for the first quarter of the year, and include no tax.\n\n"
        "| Item | Jan | Feb | Mar |\n| --- | --- | --- | --- |\n| Oak | 10 |  | 12 |\n| Ash |  | 7 | 8 |\n"
        "| Elm | 1 | 2 | 3 |\n|  |  |  | 25 |"
    )


def test_two_tables_of_page_are_kept() -> None:
    first = draw_rows(HEADER, ("1. Oak", "", "", "9"), ("2. Ash", "3", "", "9"))
    second = draw_rows(("Town", "Shops", "Staff"), ("Oxbridge", "", "4"), ("a|b", "2", ""), top=400)

    text = convert_pdf(build_drawn_pdf(f"{first}\n{second}"))[0]

    assert text == (
        "| Item | Jan | Feb | Mar |\n| --- | --- | --- | --- |\n| 1. Oak |  |  | 9 |\n"
        "| 2. Ash | 3 |  | 9 |\n\n"
        "| Town | Shops | Staff |\n| --- | --- | --- |\n| Oxbridge |  | 4 |\n| a\\|b | 2 |  |"
    )


@pytest.mark.parametrize(
    "rows",
    [
        [HEADER, ("Oak", "10", "11", "12"), ("Ash", "6", "7", "8")],
        [("Name", "Ann Alder"), ("Town", "Oxbridge"), ("Age", "")],
        [("Oak", "10", "", "12"), ("Ash", "", "7", "8")],
    ],
    ids=["no empty cell", "two columns", "two rows"],
)
def test_other_rows_stay_lines(rows: list[tuple[str, ...]]) -> None:
    text = convert_pdf(build_drawn_pdf(draw_rows(*rows)))[0]

    assert text == "\n".join(" ".join(filter(None, row)) for row in rows)


def test_columns_of_prose_stay_lines() -> None:
    columns = zip(*([f"words of column {n} which go on" for n in range(8)] for _ in range(2)), strict=True)

    assert "|" not in convert_pdf(build_drawn_pdf(draw_rows(*columns)))[0]


def test_many_tables_of_page_are_read_in_time() -> None:
    places = [
        (72 + 60 * column, 900_000 - 100 * table - 11 * row)
        for column in range(3)
        for table in range(3000)
        for row in range(3)
        if (row, column) != (2, 1)
    ]
    stream = "".join(f"1 0 0 1 {x} {y} Tm (x) Tj " for x, y in places)
    started = time.process_time()

    text, *_ = convert_pdf(build_drawn_pdf(f"BT /F1 10 Tf {stream}ET"))

    assert text.count("x") == len(places)
    assert time.process_time() - started < 6
