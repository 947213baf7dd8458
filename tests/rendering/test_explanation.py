import html
import re

import treecaps
from treecaps.rendering.explanation import to_html


def source_of(page: str) -> str:
    """Return the program that a page shows, without what stands before its lines."""
    (shown,) = re.findall("<h2>Source.*?<pre>(.*?)</pre>", page, re.DOTALL)
    lines = re.sub('<span class="l".*?</span>', "", shown)
    return html.unescape(re.sub("<.*?>", "", lines))


def test_the_source_is_shown_as_it_is() -> None:
    code = 'def f(a):\n\n    """Say <b>&amp;\n  so."""\n\treturn a  < "x"\n\n'
    found = treecaps.explain(treecaps.load("algorithms"), treecaps.parse_code(code, "python"))
    page = to_html(found)
    assert source_of(page) == code
    assert re.findall('id="L(.*?)"', page) == [str(number + 1) for number in range(7)]
    assert page.count("data-e=") == len(found.tree)


def test_a_deep_tree_is_cut() -> None:
    code = "int f() { return " + "(" * 400 + "1" + ")" * 400 + "; }\n"
    found = treecaps.explain(treecaps.load("algorithms"), treecaps.parse_code(code, "c"))
    page = to_html(found)
    assert source_of(page) == code
    assert page.count("<details") == page.count("</details>") > 90
    assert 100 < page.count("data-e=") < len(found.tree)
    assert re.search(r"\(\d+ below\)", page)
