import html
import json
import os
import re
from pathlib import Path

import pytest

from tests.cli.test_cli import PROGRAMS, run
from tests.inference.examples import save_small_model

GCD = PROGRAMS / "gcd/gcd.c"


def test_the_lines_that_matter_are_told() -> None:
    done = run("explain", GCD)
    assert done.returncode == 0, done.stderr
    first, *lines = done.stdout.splitlines()
    assert re.search(r": gcd \d+%; what adds to gcd:$", first)
    code = GCD.read_text().splitlines()
    assert [line[10:].rstrip() for line in lines][: len(code)] == [one.rstrip() for one in code]
    shares = {line[10:].strip(): float(line[:6]) for line in lines if line[:6].strip()}
    assert max(shares, key=lambda line: shares[line]) in {
        one.strip() for one in code if "gcd" in one
    }


def test_json_has_lines_nodes_and_routes() -> None:
    found = json.loads(run("explain", GCD, "--json", "--label", "bubble-sort").stdout)
    assert found["explained"] == "bubble-sort"
    assert found["label"] == "gcd"
    assert found["method"] == "gradients"
    assert len(found["lines"]) == GCD.read_bytes().count(b"\n") + 1
    assert found["nodes_in_all"] == len(found["nodes"])
    text = GCD.read_bytes()
    named = [text[node["start"] : node["end"]] for node in found["nodes"]]
    assert b"gcd" in named
    assert all(route["nodes"] for route in found["routes"])


def test_standard_input_and_a_file_agree(tmp_path: Path) -> None:
    by_input = run("explain", "-", "--language", "c", "--json", stdin=GCD.read_bytes())
    by_file = run("explain", GCD, "--json")
    one, other = (json.loads(done.stdout) for done in (by_input, by_file))
    assert one["lines"] == other["lines"]


def test_an_empty_program_is_not_explained(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text("# gcd\n")
    done = run("explain", file)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"treecaps: error: {file} is empty: there is nothing to explain\n"


def test_of_hardly_any_code_a_class_must_be_chosen(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text("app = 1\n")
    done = run("explain", file)
    assert (done.returncode, done.stdout) == (2, "")
    reason = "there is too little code to tell; choose one (--label)"
    assert done.stderr == f"treecaps: error: {file} has no class to explain: {reason}\n"
    first = run("explain", file, "--label", "trie").stdout.split("\n")[0]
    reason = "unknown, there is too little code to tell"
    assert first == f"{file}: {reason}; what adds to trie:"


def test_a_page_shows_code_and_runs_none_of_it(tmp_path: Path) -> None:
    file = tmp_path / "evil.py"
    file.write_text(
        'x = "<script>alert(1)</script>"\n# </pre><img src=x onerror=alert(2)>\ny = x\n'
    )
    out = tmp_path / "page.html"
    done = run("explain", file, "--label", "gcd", "--html", out)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(out)
    page = out.read_text()
    assert page.count("<script>") == 1
    assert "&lt;script&gt;" in page
    assert "<img" not in page
    assert "script-src 'sha256-" in page
    assert "http://" not in page
    assert "https://" not in page


def test_a_file_whose_name_is_no_text(tmp_path: Path) -> None:
    file = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.py"))
    file.write_text("x = 1\n")
    out = tmp_path / "page.html"
    done = run("explain", file, "--label", "gcd", "--html", out)
    assert done.returncode == 0, done.stderr
    assert "\N{REPLACEMENT CHARACTER}.py" in out.read_text(encoding="utf-8")


def test_a_large_program_makes_a_page_of_bounded_size(tmp_path: Path) -> None:
    file = tmp_path / "large.py"
    lines = [
        f"def f{n}(a, b):\n    return a[{n}] + b * {n} if a else g(b, {n})" for n in range(4000)
    ]
    file.write_text("\n".join(lines))
    out = tmp_path / "page.html"
    assert run("explain", file, "--html", out).returncode == 0
    page = out.read_text()
    assert len(page) < 3_000_000
    assert "more nodes" in page
    # The strongest lines come first, and most of the others are folded.
    first, last = page.index("Strongest lines"), page.index("<h2>Source")
    listed = re.findall(r'href="#(L\d+)">', page[first:last])
    assert len(listed) == 20
    assert all(f'id="{line}"' in page for line in listed)
    assert page.count("<details><summary>lines ") > 5
    assert 0 < page.count("<details open>") < 300
    found = json.loads(run("explain", file, "--json").stdout)
    assert found["nodes_in_all"] > 100_000
    assert 1000 <= len(found["nodes"]) < 1030  # those that routes name are among them
    told = {node["node"] for node in found["nodes"]}
    assert all(one["node"] in told for route in found["routes"] for one in route["nodes"])


def test_a_deep_program_makes_a_page_of_bounded_depth(tmp_path: Path) -> None:
    file = tmp_path / "deep.c"
    file.write_text("int f() { return " + "(" * 5000 + "1" + ")" * 5000 + "; }")
    out = tmp_path / "page.html"
    assert run("explain", file, "--html", out).returncode == 0
    page = out.read_text()
    assert page.count("<details") < 150
    assert "below)" in page


def test_tabs_stay_as_wide_as_they_are(tmp_path: Path) -> None:
    file = tmp_path / "tabs.c"
    file.write_text("int f() {\n\treturn\t0;\n}\n")
    lines = run("explain", file, "--label", "gcd").stdout.splitlines()
    assert lines[2][10:] == "        return  0;"


def test_control_characters_in_code_are_escaped(tmp_path: Path) -> None:
    file = tmp_path / "evil.c"
    file.write_text("int f() {\r\n\treturn\f 0; // \x1b[41m \u2028 \u202e \r x\r\n}\n", newline="")
    lines = run("explain", file, "--label", "gcd").stdout.split("\n")
    assert all(line.isprintable() for line in lines)
    assert [line[10:] for line in lines[1:4]] == [
        "int f() {",
        "        return\\x0c 0; // \\x1b[41m \\u2028 \\u202e \\r x",
        "}",
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["examples/programs"], "explain takes one program, and"),
        (["nowhere.py"], "nowhere.py: "),
        (["README.unknown"], "unknown language"),
        (["https://example.org/a.py"], "is a URL; download it first, or pipe it into '-'"),
        ([str(GCD), "--label", "no-such"], "the model knows no class 'no-such'"),
        ([str(GCD), "--label", "unknown"], "unknown is no class: without a label, the best guess"),
        ([str(GCD), "--html", "/nowhere/page.html"], "cannot write /nowhere/page.html"),
        ([str(GCD), "--model", "no-such"], "there is no model no-such"),
    ],
)
def test_what_cannot_be_explained(words: list[str], message: str, tmp_path: Path) -> None:
    (tmp_path / "README.unknown").write_text("what")
    home = PROGRAMS.parents[1]
    words = [
        str(tmp_path / word)
        if word == "README.unknown"
        else str(home / word)
        if word.startswith("examples")
        else word
        for word in words
    ]
    done = run("explain", *words)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_numbers_of_the_capsule_are_varied(tmp_path: Path) -> None:
    file = Path(__file__).parents[1] / "golden/poj104/matrix-product.c"
    out = tmp_path / "page.html"
    done = run("explain", file, "--model", "poj104", "--perturb", "--html", out, "--json")
    assert done.returncode == 0, done.stderr
    dimensions = json.loads(done.stdout)["dimensions"]
    assert sorted(one["number"] for one in dimensions) == list(range(8))
    assert all(one["comes"][0]["share"] > 0 > one["goes"][0]["share"] for one in dimensions)
    page = out.read_text()
    assert "Numbers of the capsule" in page
    assert dimensions[0]["comes"][0]["window"] in html.unescape(page)
    shown = run("explain", file, "--model", "poj104", "--perturb").stdout
    assert f"number {dimensions[0]['number']}, which moves" in shown


def test_a_model_without_a_decoder_cannot_vary_numbers(tmp_path: Path) -> None:
    model = save_small_model(tmp_path / "model")
    done = run("explain", GCD, "--model", model, "--perturb")
    assert done.returncode == 2
    assert "no decoder" in done.stderr
    assert "train one with windows=1000" in done.stderr
