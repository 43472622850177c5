"""What is asked wrongly: the page keeps the form as it was sent, and names the field."""

import re

import pytest

SWAPPED = "from=2026-11-20&to=2026-11-01"


def fields(page):
    """The inputs of a page's forms, by name."""
    return {
        name[1]: each
        for each in re.findall(r"<input [^>]+>", page)
        if (name := re.search(r' name="(\w+)"', each))
    }


@pytest.mark.parametrize(
    ("query", "marked", "told"),
    [
        (SWAPPED, {"from", "to"}, "Swap the two dates"),
        ("from=soon&to=2026-11-20", {"from"}, "“from”: Write year"),
        ("from=soon&to=never", {"from", "to"}, "2026-11-21. “to”: Write year"),
        ("from=2026-11-01&to=2026-11-31", {"to"}, "“to”: Write year"),
        ("from=1900-01-01&to=2026-11-20", {"from", "to"}, "longer than ten years"),
        ("from=2026-11-01&to=2026-11-20&by=hour", set(), "“by”: Choose one of day, week"),
        ("from=2026-11-01&to=2026-11-20&frm=1", set(), "Did you mean “from”?"),
        ("from=2026-11-01&to=2026-11-20&utm=1", set(), "“utm” is not known here"),
        ("from=2026-11-01&to=2026-11-20&value=opera", set(), "“value”"),
    ],
)
@pytest.mark.parametrize("path", ["/metric/browser", "/metric/browser/compare"])
def test_a_metric_keeps_its_form(shared_browser, path, query, marked, told):
    """Swapped dates, no dates, and parameters or choices that there are not: 400, the form as it
    was sent, the fields at fault marked, and what to do said on the page."""
    if path.endswith("compare") and ("by=" in query or "value=" in query):
        told = "is not known here"
    answer = shared_browser.get(f"{path}?{query}")
    assert answer.status_code == 400
    page = answer.text
    sent = dict(pair.split("=") for pair in query.split("&"))
    kept = fields(page)
    assert all(f' value="{sent[name]}"' in kept[name] for name in ("from", "to"))
    assert {name for name, each in kept.items() if "aria-invalid" in each} == marked
    alert = re.search(r'<p class="problem"[^>]* role="alert"[^>]*>(.*?)</p>', page)
    assert alert is not None
    assert told in alert[1]
    assert "Which browser opens links?" in page
    assert "20,000 reports" not in page
    assert not re.search(r'<ul class="presets".*aria-current.*</ul>', page, re.DOTALL)
