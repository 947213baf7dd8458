import base64
import hashlib
import re
from pathlib import Path

import jinja2
import pytest

from treecaps.inference.confusion import Confusion
from treecaps.rendering import charts, page
from treecaps.rendering.confusion import to_svg

EVIL = "</title><script>alert(1)</script>'\"&"
TEMPLATES = Path(page.__file__).parent / "templates"


def test_text_is_escaped_and_charts_are_not() -> None:
    found = page.render("reproduction", title=EVIL, remarks=[EVIL], head=[EVIL], columns=[])
    assert "alert(1)" in found
    assert "<script" not in found
    names = [EVIL, "b"]
    for chart in (
        charts.bars({EVIL: 0.5}, {EVIL: 0.1}),
        charts.curves({EVIL: [0.5, None, 1.0]}),
        charts.points([(0.0, 1.0), (1.0, 0.0)], [0, None], names, names),
        to_svg(Confusion((EVIL, "b"), ((1, 2), (0, 1)))),
    ):
        assert "<svg" in chart
        assert "alert(1)" in chart
        assert "<script" not in chart
        assert chart == chart.__html__()  # a template shows it as it is


def test_what_a_template_is_not_given_is_an_error() -> None:
    with pytest.raises(jinja2.UndefinedError, match="remarks"):
        page.render("reproduction", title="a", head=[], columns=[])


@pytest.mark.parametrize("name", sorted(path.stem for path in TEMPLATES.glob("*.js")))
def test_a_page_allows_its_own_script_and_no_other(name: str) -> None:
    source = (TEMPLATES / f"{name}.html.j2").read_text()
    # The page without what it shows: its frame, style and script.
    frame = re.sub("{% block content %}.*{% endblock %}", "", source, flags=re.DOTALL)
    found = page._ENVIRONMENT.from_string(frame).render(title="a")
    (script,) = re.findall("<script>(.*?)</script>", found, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'" in found
    assert "color-scheme: light dark" in found
