"""Digests are kept in models, checkpoints, indexes and corpora: these values may never change."""

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treecaps.hashing import digest, digest_fields, digest_file, digest_parts, hash_64


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "99aa06d3014798d86001c324468d497f"),
        (b"treecaps", "e3ce6d0e2d192bc862a56908988bb49b"),
        (bytes(range(256)) * 4096, "1b208d2839093774d36c0e13a3df139e"),
    ],
)
def test_digests_of_bytes_and_files_stay(content: bytes, expected: str, tmp_path: Path) -> None:
    assert digest(content) == expected
    assert digest_parts([content]) == expected
    (tmp_path / "file").write_bytes(content)
    assert digest_file(tmp_path / "file") == expected


def test_digests_of_fields_stay() -> None:
    assert digest_fields() == digest(b"")
    assert digest_fields("python", b"x = 1\n") == "34562f96537cfcf9cecf22f3ef94c1b4"
    assert digest_fields("é\udcff", b"") == "c7c7b29c9525e00f6d41b17c3db8d34d"


def test_hashes_of_64_bits_stay() -> None:
    assert hash_64(b"") == 0x2D06800538D394C2
    assert hash_64(b"treecaps") == 0xEFE28562C1D98E4F


@given(st.binary(max_size=2000), st.lists(st.integers(0, 2000)))
def test_it_does_not_matter_how_bytes_are_divided(content: bytes, cuts: list[int]) -> None:
    bounds = [0, *sorted(cuts), len(content)]
    assert digest_parts(content[a:b] for a, b in pairwise(bounds)) == digest(content)


@given(st.lists(st.binary()), st.lists(st.binary()))
def test_it_matters_where_fields_end(one: list[bytes], other: list[bytes]) -> None:
    assert (digest_fields(*one) == digest_fields(*other)) == (one == other)


def test_a_text_counts_by_its_bytes() -> None:
    assert digest_fields("é") == digest_fields("é".encode())
    assert digest_fields("ab", "c") != digest_fields("a", "bc")
