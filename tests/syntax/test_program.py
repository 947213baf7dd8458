import os
import pickle
import socket
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import treecaps
from tests.conftest import without_privileges
from tests.inference.examples import small_model
from treecaps.errors import Failure, ProgramError, UsageError
from treecaps.syntax.program import Program, decode

CODE = "int f(void) { return 0; } /* grün */\n"


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"]
)
def test_unicode_in_any_form_is_read(encoding: str) -> None:
    assert decode(CODE.encode(encoding)) == (CODE.encode(), 0)


def test_marked_big_endian_text_is_read() -> None:
    assert decode(b"\xfe\xff" + CODE.encode("utf-16-be")) == (CODE.encode(), 0)
    assert decode(b"\0\0\xfe\xff" + CODE.encode("utf-32-be")) == (CODE.encode(), 0)


def test_other_encodings_keep_what_is_readable() -> None:
    text, replaced = decode(CODE.encode("latin-1"))
    assert text == CODE.replace("ü", "\N{REPLACEMENT CHARACTER}").encode()
    assert replaced == 1


def test_marks_may_stand_twice_and_surrogates_count_as_replaced() -> None:
    assert decode(b"\xef\xbb\xbf" * 2 + b"int a;") == (b"int a;", 0)
    program = Program('char *s = "\ud800"; // and a comment', "c")
    assert program.replaced > 0
    assert b"?" not in program.text


def test_a_program_is_a_value() -> None:
    program = Program(b"a = 1  # \xff", "py", id="a.py", label="x")
    assert (program.text, program.language) == ("a = 1  # \ufffd".encode(), "python")
    same = Program("a = 1  # \ufffd", "Python", id="a.py", label="x")
    assert program != same, "one has a character replaced"
    assert Program(same.text, "python", id="a.py", label="x") == same
    assert pickle.loads(pickle.dumps(program)) == program
    assert len({program, pickle.loads(pickle.dumps(program)), same}) == 2
    with pytest.raises(AttributeError):
        program.text = b""  # type: ignore[misc]
    assert repr(program) == "Program('a.py', language='python', bytes=12, label='x')"


def test_a_copy_may_have_another_id_or_text() -> None:
    program = Program("int a;", "c", label="x")
    assert program.replace(id="b") == Program("int a;", "c", id="b", label="x")
    assert program.replace(text=b"") == Program("", "c", label="x")


def test_clean_text_is_taken_as_it_is() -> None:
    program = Program.from_clean_text(b"x", "cobol", id="a", label="b", replaced=3)
    assert (program.text, program.language, program.replaced) == (b"x", "cobol", 3)
    assert (program.id, program.label) == ("a", "b")


def test_a_path_in_place_of_code_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"not PosixPath; Program\.read\(path\) reads a file"):
        Program(tmp_path / "a.c", "c")  # type: ignore[arg-type]


def test_the_limit_counts_bytes() -> None:
    with pytest.raises(ProgramError, match="larger than"):
        Program("\u4e2d" * 50, "c", max_bytes=100)


def test_replacement_characters_of_the_source_are_not_counted() -> None:
    source = "\N{REPLACEMENT CHARACTER}" * 3
    assert decode(source.encode() + b" code " * 9 + b"\xff")[1] == 1


def test_broken_utf_16_counts_as_replaced() -> None:
    assert decode(CODE.encode("utf-16") + b"\x00\xd8")[1] == 1


def test_stray_nul_bytes_become_spaces() -> None:
    assert decode(b"int a;\0\0int b;") == (b"int a;  int b;", 2)


@pytest.mark.parametrize("data", [b"\x7fELF\x02\x01\x01" + bytes(60), bytes(range(256)) * 4, b"\0"])
def test_binary_data_are_refused(data: bytes) -> None:
    with pytest.raises(ProgramError, match="looks like a binary file") as caught:
        decode(data)
    assert caught.value.code == "binary"


@given(st.binary())
def test_any_bytes_become_clean_text_or_an_error(data: bytes) -> None:
    try:
        text, replaced = decode(data)
    except ProgramError:
        return
    text.decode("utf-8")
    assert b"\0" not in text
    assert replaced >= 0


@given(st.text(alphabet=st.characters(exclude_characters="\0", exclude_categories=["Cc"])))
def test_valid_text_is_never_changed(text: str) -> None:
    text = text.removeprefix("\ufeff")
    assert decode(text.encode("utf-8", "replace")) == (text.encode("utf-8", "replace"), 0)


def test_a_file_is_read_and_its_name_tells_the_language(tmp_path: Path) -> None:
    path = tmp_path / "Main.CPP"
    path.write_bytes(b"int a;\r\n")
    program = Program.read(path)
    assert (program.text, program.language, program.id) == (b"int a;\r\n", "cpp", str(path))
    assert Program.read(path, "c").language == "c"


def test_an_empty_file_is_an_empty_program(tmp_path: Path) -> None:
    (tmp_path / "a.c").touch()
    assert Program.read(tmp_path / "a.c").text == b""


@pytest.mark.parametrize(
    ("name", "text", "language"),
    [
        ("a.h", "#include <stdio.h>\nint f(int a);\n", "c"),
        ("a.h", '#ifdef __cplusplus\nextern "C" {\nclass X;\n#endif\nint class(int x);\n', "c"),
        ("a.h", "// class A {};\nint f(int a, int b) { return a & b; }\n", "c"),
        ("A.H", "#pragma once\nclass A { int b; };\n", "cpp"),
        ("a.h", "#include <vector>\nint f();\n", "cpp"),
        ("tool", "#!/usr/bin/env python3\nputs 'x'\n", "python"),
        ("tool", "#!/opt/bin/ruby -w\nx = 1\n", "ruby"),
        ("tool", "#!/usr/bin/env A=1 deno\nx = 1\n", "typescript"),
        ("tool", "package main\n\nfunc main() { x := 1 }\n", "go"),
    ],
)
def test_contents_tell_the_language(tmp_path: Path, name: str, text: str, language: str) -> None:
    (tmp_path / name).write_text(text)
    assert Program.read(tmp_path / name).language == language
    assert Program.read(tmp_path / name, "kotlin").language == "kotlin"


@pytest.mark.parametrize(
    "piece", ["/*", '"\\"', "#if x __cplusplus\n", "class ", "const a", "template "]
)
def test_no_header_takes_long(tmp_path: Path, piece: str) -> None:
    (tmp_path / "a.h").write_text(piece * 100_000)
    begun = time.monotonic()
    Program.read(tmp_path / "a.h")
    assert time.monotonic() - begun < 2


@pytest.mark.parametrize("path", ["https://example.org/a/b.py", "file:///tmp/a.c", "http://a/b"])
def test_urls_are_refused_with_a_sentence(path: str) -> None:
    for form in (path, Path(path)):
        with pytest.raises(ProgramError, match="is a URL; download it first"):
            Program.read(form)


@pytest.mark.parametrize("name", ["a.xyz", "shell", "a."])
def test_an_unknown_language_says_what_to_do(tmp_path: Path, name: str) -> None:
    with pytest.raises(ProgramError, match="no such file"):
        Program.read(tmp_path / name)
    (tmp_path / name).write_text("#!/bin/sh\nls\n")
    with pytest.raises(ProgramError, match=r"unknown language .*language=NAME") as caught:
        Program.read(tmp_path / name)
    assert caught.value.code == "unknown-language"


def test_an_unknown_language_name_lists_the_known_ones() -> None:
    with pytest.raises(UsageError, match="unknown language 'cobol'; known: c, c_sharp, cpp"):
        Program("x", "cobol")


def test_large_programs_are_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "a.c"
    with open(path, "wb") as file:
        file.truncate(50_000_000)
    with pytest.raises(ProgramError, match=r"larger than 10 MB \(50.0 MB.*max_bytes"):
        Program.read(path)
    with pytest.raises(ProgramError, match="larger than"):
        Program("x" * 100, "c", max_bytes=99)


def test_what_is_not_a_file_is_said(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo.c")
    (tmp_path / "folder.c").mkdir()
    (tmp_path / "loop.c").symlink_to("loop.c")
    (tmp_path / "dangling.c").symlink_to("nowhere.c")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket.c"))
        for name, complaint in (
            ("fifo.c", "is a FIFO, not a file; pipe it into '-' instead"),
            ("folder.c", "is a folder, not a file"),
            ("loop.c", "leads back to itself"),
            ("dangling.c", "no such file"),
            ("missing.c", "no such file"),
            ("socket.c", "is a device or socket"),
            ("nul\0.c", "holds a NUL"),
            ("x" * 300 + ".c", "file name too long"),
        ):
            with pytest.raises(ProgramError, match=complaint) as caught:
                Program.read(tmp_path / name)
            assert caught.value.code == "unreadable"


def test_an_unreadable_file_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("open.c", "closed.c"):
        (tmp_path / name).write_text("int a;")
    (tmp_path / "closed.c").chmod(0)
    tmp_path.chmod(0o755)
    monkeypatch.chdir(tmp_path)  # others may not enter the folders above
    with without_privileges():
        assert Program.read("open.c").text == b"int a;"
        with pytest.raises(ProgramError, match="permission denied"):
            Program.read("closed.c")


@pytest.mark.parametrize(
    "code", ["x = 1\n", "x = 1", "int f() {}", "print(1)", "a = b; c", CODE * 999]
)
def test_code_in_place_of_a_path_is_told(code: str) -> None:
    told = r"no such file; if this is code, give Program\(code, language\)"
    with pytest.raises(ProgramError, match=told) as caught:
        Program.read(code)
    assert caught.value.code == "unreadable"
    with pytest.raises(ProgramError, match=told):
        treecaps.parse_file(code)
    with pytest.raises(ProgramError, match=told):
        treecaps.explain(small_model(), code)
    (failure,) = treecaps.classify(small_model(), [code], workers=1)
    assert isinstance(failure, Failure)
    assert "Program(code" in failure.message
    assert list(small_model().embed([code], workers=1)) == [failure]


def test_paths_may_look_like_code(tmp_path: Path) -> None:
    path = tmp_path / "copy (1);.c"
    path.write_text(CODE)
    assert Program.read(str(path)).text == CODE.encode()
    with pytest.raises(ProgramError, match=r"^no such file or directory$"):
        Program.read(path.with_name("copy (2).c"))
