"""Untrusted archives: accepted and rejected members, and limits."""

from __future__ import annotations

import gzip
import hashlib
import io
import stat
import struct
import tarfile
import tracemalloc
import zipfile
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from package_registry import make_tar, make_zip

from centgate.libdocs.archive.archives import (
    MAX_DOCUMENT_BYTES,
    MAX_FILE_BYTES,
    MAX_MEMBERS,
    MAX_UNPACKED_BYTES,
    BadArchive,
    is_safe_path,
    read_archive,
)
from centgate.libdocs.archive.file_selection import MAX_TEXT_LENGTH, MAX_UNDOCUMENTED
from centgate.libdocs.parse.javascript import split_javascript
from centgate.libdocs.registry.packages import Archive, ArchiveKind

README = "quill-1.0/README.md"
BLOCK = tarfile.BLOCKSIZE


def describe_archive(content: bytes, kind: ArchiveKind = "sdist", shown_at: str | None = None) -> Archive:
    """Describe these bytes as a registry would."""
    digest = hashlib.sha256(content).digest()
    return Archive(kind, "https://files.example/x", "sha256", digest, len(content), shown_at)


def list_paths(content: bytes, kind: ArchiveKind = "sdist") -> list[str]:
    """Return the paths of the documents in an archive."""
    return [document.path for document in read_archive(content, describe_archive(content, kind)).documents]


def make_header(name: str, size: int, kind: bytes = tarfile.REGTYPE, link: str = "") -> bytes:
    """Return the header of a member; its size may be false."""
    make_member = tarfile.TarInfo(name)
    make_member.size, make_member.type, make_member.linkname = size, kind, link
    return make_member.tobuf(tarfile.GNU_FORMAT)


def pad_body(body: bytes) -> bytes:
    """Return the body of a member, padded to full blocks."""
    return body + bytes(-len(body) % BLOCK)


def make_member(name: str, body: bytes = b"text that is read") -> bytes:
    """Return a correct member."""
    return make_header(name, len(body)) + pad_body(body)


def test_source_distribution_is_read_below_its_root() -> None:
    content = make_tar(
        {
            README: "# Quill",
            "quill-1.0/docs/guide/pens.rst": "Pens\n====",
            "quill-1.0/src/quill/pen.py": "def dip(): ...",
            "quill-1.0/docs_src/dip.py": "dip()",
        }
    )

    found = read_archive(
        content, describe_archive(content, shown_at="https://shown.example/quill-1.0.tar.gz/")
    ).documents

    assert [(each.path, each.kind) for each in found] == [
        ("README.md", "markdown"),
        ("docs/guide/pens.rst", "rst"),
        ("docs_src/dip.py", "python"),
        ("quill/pen.py", "python"),
    ]
    assert found[3].source_url == "https://shown.example/quill-1.0.tar.gz/quill-1.0/src/quill/pen.py"


def test_javascript_package_is_read_below_its_root() -> None:
    content = make_tar(
        {
            "package/Readme.md": "# Quill",
            "package/index.d.ts": "export function dip(): void;",
            "package/index.d.cts": "export function dip(): void;",
            "package/lib/index.js": "exports.dip = () => {}",
            "package/examples/dip.js": "dip()",
            "package/docs/pens.md": "# Pens",
            "package/dist/quill.min.js": "x",
        }
    )

    found = read_archive(
        content, describe_archive(content, "npm", "https://unpkg.com/quill@1.0.0/")
    ).documents

    assert [each.path for each in found] == ["Readme.md", "docs/pens.md", "examples/dip.js", "index.d.ts"]
    assert found[1].source_url == "https://unpkg.com/quill@1.0.0/docs/pens.md"


def test_wheel_without_readme_is_described_by_metadata() -> None:
    metadata = (
        "Metadata-Version: 2.4\nName: quill\nDescription-Content-Type: text/markdown\n\n"
        "# Quill\n\nPens for people who write letters.\n"
    )
    content = make_zip({"quill/pen.py": "def dip(): ...", "quill-1.0.dist-info/METADATA": metadata})

    found = read_archive(content, describe_archive(content, "wheel")).documents

    assert [(each.path, each.kind) for each in found] == [("README", "markdown"), ("quill/pen.py", "python")]
    assert "Pens for people" in found[0].text


@pytest.mark.parametrize(
    "path",
    [
        "quill/tests/test_pen.py",
        "docs/conf.py",
        "docs/_static/x.md",
        "docs/changelog.md",
        "docs/releases/1.0.txt",
        "docs/whatsnew-1.0.rst",
        "tests/pens.md",
        "docs/versionhistory.rst",
        "docs/releasenotes/1.0.md",
        "build/codemods/v5/pens.py",
        "docs/de/index.md",
        "docs/zh-CN/index.md",
        "doc.ptbr/index.md",
        "README.zh-CN.md",
        "CHANGELOG.md",
        "LICENSE.md",
        "CONTRIBUTING.rst",
        "quill/_vendor/other.py",
        "quill/locale/de.py",
        ".github/README.md",
        "setup.py",
        "notes.txt",
        "docs/picture.svg",
    ],
)
def test_file_without_documentation_is_skipped(path: str) -> None:
    assert list_paths(make_tar({f"quill-1.0/{path}": "text", README: "# Quill"})) == ["README.md"]


@pytest.mark.parametrize(
    "path",
    [
        "docs/topics/pens.txt",
        "docs/en/index.md",
        "examples/pens/dip.py",
        "README",
        "quill/testing.py",
        "quill/test/client.py",
        "quill/security.py",
        "quill/history.py",
        "doc/build/orm/session.rst",
        "quill/.agents/skills/quill/SKILL.md",
    ],
)
def test_documentation_file_is_read(path: str) -> None:
    assert list_paths(make_tar({f"quill-1.0/{path}": "text"})) == [path]


def test_tests_are_read_if_little_else_shows_usage() -> None:
    files = {README: "# Quill", "quill-1.0/tests/test_pen.py": "text", "quill-1.0/quill/pen.py": "text"}

    assert list_paths(make_tar(files)) == ["README.md", "quill/pen.py", "tests/test_pen.py"]
    guide = {"quill-1.0/docs/guide.md": "text " * MAX_UNDOCUMENTED}
    assert list_paths(make_tar(files | guide)) == ["README.md", "docs/guide.md", "quill/pen.py"]
    shown = {"quill-1.0/docs_src/testing/test_main.py": "text"}
    assert "docs_src/testing/test_main.py" in list_paths(make_tar(files | guide | shown))
    own = {"quill-1.0/quill/test/samples/test_pen.py": "text"}
    assert "quill/test/samples/test_pen.py" not in list_paths(make_tar(files | guide | own))


@pytest.mark.parametrize(
    "path", ["dist/quill.js", "a/b.min.js", "ts5.0/index.d.ts", "node_modules/x/index.d.ts"]
)
def test_generated_files_are_skipped(path: str) -> None:
    assert list_paths(make_tar({f"package/{path}": "x", "package/readme.md": "# Q"}), "npm") == ["readme.md"]


def test_minified_code_is_skipped_under_any_name() -> None:
    assert list_paths(make_tar({"package/index.js": "x();" * 4000, "package/readme.md": "# Q"}), "npm") == [
        "readme.md"
    ]


def test_inline_source_map_hides_no_code() -> None:
    code = "/** Sends a request. */\nexport function send(url) {}\n"
    source_map = "//# sourceMappingURL=data:application/json;base64," + "A" * 5_000
    content = make_tar({"package/lib/send.js": f"{code}{source_map}\n".encode()})

    (document,) = read_archive(content, describe_archive(content, "npm")).documents

    assert document.text.rstrip() == code.rstrip()
    assert [chunk.title for chunk in split_javascript(document)] == ["send"]


def test_archive_with_wrong_digest_is_refused() -> None:
    content = make_tar({README: "# Quill"})
    wrong = replace(describe_archive(content), digest=bytes(32))

    with pytest.raises(BadArchive, match="digest"):
        read_archive(content, wrong)


@pytest.mark.parametrize(
    "path",
    [
        "/etc/docs/x.md",
        "../docs/x.md",
        "quill-1.0/docs/../../x.md",
        "quill-1.0/./docs/x.md",
        "quill-1.0//docs/x.md",
        "C:/docs/x.md",
        "quill-1.0\\docs\\x.md",
        "quill-1.0/docs/\x1b[2Jx.md",
        "quill-1.0/docs/" + "x" * 400 + ".md",
        "",
    ],
)
def test_path_outside_of_archive_is_skipped(path: str) -> None:
    content = make_tar({path: "text", README: "# Quill"})

    assert not is_safe_path(path)
    assert list_paths(content) == ["README.md"]


@pytest.mark.parametrize(
    "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE, tarfile.DIRTYPE]
)
def test_links_and_devices_are_skipped(kind: bytes) -> None:
    odd = make_header("quill-1.0/docs/x.md", 0, kind, "/etc/passwd")

    assert list_paths(gzip.compress(odd + make_member(README) + bytes(1024))) == ["README.md"]


def test_links_in_zip_are_skipped() -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as written:
        link = zipfile.ZipInfo("quill-1.0/docs/x.md")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        written.writestr(link, "/etc/passwd")
        written.writestr(README, "# Quill")

    assert list_paths(packed.getvalue()) == ["README.md"]


def test_sparse_file_is_skipped() -> None:
    sparse = bytearray(make_header("quill-1.0/docs/x.md", 0, tarfile.GNUTYPE_SPARSE))
    sparse[483:495] = b"77777777777\0"  # the size after expansion

    assert list_paths(gzip.compress(_with_checksum(sparse) + make_member(README) + bytes(1024))) == [
        "README.md"
    ]


@pytest.mark.parametrize(
    "size", [1 << 40, 1 << 62, (1 << 33) - 1, MAX_UNPACKED_BYTES + 1], ids=["1 TB", "4 EB", "8 GB", "300 MB"]
)
@pytest.mark.parametrize("name", ["quill-1.0/docs/x.md", "quill-1.0/data.bin"])
def test_huge_declared_member_ends_reading(size: int, name: str) -> None:
    content = gzip.compress(make_member(README) + make_header(name, size) + b"little" + bytes(4096))

    found = read_archive(content, describe_archive(content))

    assert [each.path for each in found.documents] == ["README.md"]
    assert found.incomplete


@pytest.mark.parametrize("kind", [tarfile.GNUTYPE_LONGNAME, tarfile.XHDTYPE, tarfile.GNUTYPE_LONGLINK])
def test_huge_declared_name_ends_reading(kind: bytes) -> None:
    content = gzip.compress(make_member(README) + make_header("x", 1 << 40, kind) + bytes(4096))

    assert list_paths(content) == ["README.md"]


def test_negative_member_size_ends_reading() -> None:
    odd = bytearray(make_header("quill-1.0/data.bin", 0))
    odd[124:136] = b"\xff" * 11 + b"\x00"
    content = gzip.compress(
        make_member(README) + _with_checksum(odd) + make_member("quill-1.0/docs/x.md") + bytes(1024)
    )

    assert list_paths(content)[:1] == ["README.md"]


@pytest.mark.extended
def test_chain_of_headers_ends_reading() -> None:
    chain = make_header("x", 0, tarfile.XHDTYPE) * 5_000
    content = gzip.compress(make_member(README) + chain + bytes(1024))

    assert list_paths(content) == ["README.md"]


@pytest.mark.extended
@pytest.mark.parametrize("make", [make_tar, make_zip], ids=["tar", "zip"])
def test_decompression_bomb_is_cut_off(make: Callable[[dict[str, bytes]], bytes]) -> None:
    zeros = bytes(MAX_FILE_BYTES)
    files = {README: b"# Quill"} | {f"quill-1.0/docs/{number}.md": zeros for number in range(150)}
    content = make({path: b" " * MAX_FILE_BYTES if body is zeros else body for path, body in files.items()})

    tracemalloc.start()
    found = read_archive(content, describe_archive(content))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert len(content) < 1_000_000
    assert found.incomplete == "only the first 100 MB of its documentation were read"
    assert found.documents[0].path == "README.md"
    assert most < 4 * MAX_DOCUMENT_BYTES


def test_file_that_unpacks_beyond_limit_is_skipped() -> None:
    content = make_tar({README: "# Quill", "quill-1.0/docs/x.md": "x" * (MAX_FILE_BYTES + 1)})

    assert list_paths(content) == ["README.md"]


def test_zip_with_false_sizes_is_read_to_limit() -> None:
    content = bytearray(make_zip({README: "# Quill", "quill-1.0/docs/x.md": "x" * 3_000_000}))
    directory = content.rindex(b"PK\x01\x02")
    content[directory + 24 : directory + 28] = struct.pack("<I", 10)  # the stated unpacked size

    found = list_paths(bytes(content))

    assert found[:1] == ["README.md"]


@pytest.mark.extended
def test_number_of_members_is_limited() -> None:
    many = b"".join(make_header(f"quill-1.0/data/{number}.bin", 0) for number in range(30_000))
    content = gzip.compress(make_member(README) + many + make_member("quill-1.0/docs/x.md") + bytes(1024))

    found = read_archive(content, describe_archive(content))

    assert [each.path for each in found.documents] == ["README.md"]
    assert found.incomplete == f"only its first {MAX_MEMBERS:,} files were read"


@pytest.mark.extended
def test_number_of_zip_members_is_limited() -> None:
    content = make_zip({README: "# Quill"} | {f"quill-1.0/data/{number}.bin": "" for number in range(30_000)})

    found = read_archive(content, describe_archive(content))

    assert [each.path for each in found.documents] == ["README.md"]
    assert found.incomplete == f"only its first {MAX_MEMBERS:,} files were read"


def test_truncated_archive_gives_its_first_members() -> None:
    body = b"".join(hashlib.sha256(bytes([number])).digest() for number in range(200)) * 40
    whole = make_tar({README: "# Quill", "quill-1.0/data.bin": body, "quill-1.0/docs/x.md": "text"})
    content = whole[: len(whole) - 200]

    found = read_archive(content, describe_archive(content))

    assert [each.path for each in found.documents] == ["README.md"]
    assert found.incomplete == "the archive is damaged"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"PK",
        b"PK\x03\x04 no zip",
        b"\x1f\x8b\x08 no gzip",
        gzip.compress(b"no tar" * 1000, mtime=0),
        b"<html>",
    ],
)
def test_invalid_archive_is_refused(content: bytes) -> None:
    with pytest.raises(BadArchive):
        read_archive(content, describe_archive(content))


def test_encrypted_zip_is_refused() -> None:
    content = bytearray(make_zip({README: "# Quill"}))
    content[content.index(b"PK\x03\x04") + 6] |= 1
    content[content.index(b"PK\x01\x02") + 8] |= 1

    with pytest.raises(BadArchive):
        read_archive(bytes(content), describe_archive(bytes(content)))


def test_binary_content_is_replaced_or_skipped() -> None:
    content = make_tar({README: b"\xef\xbb\xbf# Qu\xffill", "quill-1.0/docs/x.md": b"a\0b"})

    (document,) = read_archive(content, describe_archive(content)).documents

    assert document.text == "# Qu\ufffdill"


@pytest.mark.extended
def test_last_files_beyond_text_limit_are_skipped() -> None:
    length = MAX_FILE_BYTES - 1
    files = {f"quill-1.0/quill/m{number:02}.py": "#" + "x\n" * (length // 2 - 1) for number in range(40)}
    content = make_tar({**files, README: "# Quill"})

    found = read_archive(content, describe_archive(content)).documents

    assert found[0].path == "README.md"
    assert sum(len(each.text) for each in found) <= MAX_TEXT_LENGTH


def test_multi_member_gzip_is_read_completely() -> None:
    body = make_member(README) + make_member("quill-1.0/docs/x.md") + bytes(1024)
    content = gzip.compress(body[:700]) + gzip.compress(body[700:])

    assert list_paths(content) == ["README.md", "docs/x.md"]


@given(st.binary(max_size=3000), st.integers(0, 3000), st.sampled_from(["sdist", "wheel", "npm"]))
def test_damaged_archive_is_read_or_refused(noise: bytes, place: int, kind: ArchiveKind) -> None:
    whole = (make_zip if kind == "wheel" else make_tar)(
        {README: "# Quill", "quill-1.0/docs/x.md": "text" * 50}
    )
    content = whole[:place] + noise + whole[place + len(noise) :]

    try:
        found = read_archive(content, describe_archive(content, kind))
    except BadArchive:
        return
    assert all(is_safe_path(each.path) for each in found.documents)


@given(st.text(max_size=40))
def test_safe_paths_stay_inside(path: str) -> None:
    if is_safe_path(path):
        assert not path.startswith("/")
        assert ".." not in path.split("/")


def _with_checksum(block: bytearray) -> bytes:
    """Return a header with a correct checksum."""
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


@pytest.mark.extended
def test_documentation_after_many_other_files_is_read() -> None:
    filler = make_member("quill-1.0/data.bin", bytes(MAX_DOCUMENT_BYTES + 1))
    content = gzip.compress(make_member(README) + filler + make_member("quill-1.0/docs/x.md") + bytes(1024))

    assert list_paths(content) == ["README.md", "docs/x.md"]


def test_modules_that_write_documentation_are_not_read() -> None:
    docs = b"class Writer:\n    def write_docstring(self): ...\n"
    files = {
        "quill-1.0/quill/__init__.py": b"from quill.pens import Pen\n",
        "quill-1.0/quill/docs/__init__.py": b"from quill.docs.writer import Writer\n",
        "quill-1.0/quill/docs/writer.py": docs,
        "quill-1.0/quill/pens.py": b"class Pen: ...\n",
        "quill-1.0/docs/example.py": docs + b"Writer().write()\n",
    }

    assert list_paths(make_tar(files)) == ["docs/example.py", "quill/__init__.py", "quill/pens.py"]


def test_interface_to_documents_of_users_is_read() -> None:
    files = {
        "quill-1.0/quill/__init__.py": b"from quill.docs.client import Client\n",
        "quill-1.0/quill/docs/__init__.py": b"from quill.docs.client import Client\n",
        "quill-1.0/quill/docs/client.py": b"class Client:\n    def get_document(self): ...\n",
    }

    assert "quill/docs/client.py" in list_paths(make_tar(files))
