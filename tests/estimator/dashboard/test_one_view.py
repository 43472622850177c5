"""A page without what leads elsewhere."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable_estimator.dashboard.sharing.one_view import one_view


def place(address: str) -> str | None:
    """Only what is static, on the page, or called "ours" has a place."""
    if address.startswith(("#", "/static/")):
        return address
    return "/moved?a=1&b=2" if address == "/ours" else None


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("<!doctype html>\n<p>1 &lt; 2 &#34;&amp; &middot;</p><br>",) * 2,
        ('<a href="#x">x</a><link rel="stylesheet" href="/static/a.css">',) * 2,
        ('<a class="c" href="/ours" download>CSV</a>',
         '<a class="c" href="/moved?a=1&amp;b=2" download>CSV</a>'),
        ('<li><a class="c" href="/x"><b>v</b></a>', '<li><span class="c"><b>v</b></span>'),
        ('<p>All. <a href="/x"><b>Show</b> more</a> End.</p>', "<p>All.  End.</p>"),
        ('<svg><p/><a href="/x"><rect/></a></svg>', "<svg><p/><g><rect/></g></svg>"),
        ('a<form action="/x"><input name="t" value="s"><p>f</p></form>b', "ab"),
        ('<div class="a controls b"><div>x</div><img src="/y"><br></div>z', "z"),
        ('<nav class="crumbs"><a href="/">all</a></nav><nav class="languages">x</nav>',
         '<nav class="languages">x</nav>'),
        ('<img src="/x"><img src="/static/y"><script>alert("<p>")</script>',
         '<img src="/static/y">'),
        ('<button formaction="/x" type="submit">s</button>', '<button type="submit">s</button>'),
        ('<a>no address</a><a href="/x">', "<a>no address</a><span>"),
        ('<p title="&lt;a href=/x&gt;">', '<p title="&lt;a href=/x&gt;">'),
        ('<q cite="/x">q</q>', "<q>q</q>"),
        ("<iframe src='/x'>y</iframe><object data='/x'></object>.", "."),
        ('<A HREF="/x">V</A>', "<span>V</span>"),
        ('<area href="/x"><base href="/x">', ""),
    ],
)  # fmt: skip
def test_what_has_no_place_goes(page: str, expected: str) -> None:
    """Links, forms, choices and pictures of elsewhere; all else stays character by character."""
    assert one_view(page, place) == expected


_PARTS = st.sampled_from(
    [
        *(
            "<p>",
            "</p>",
            "<svg>",
            "</svg>",
            "<a href='/x'>",
            "<a href=/ours>",
            "</a>",
            "<a>",
            "text",
        ),
        *(
            '<form action="/x">',
            "</form>",
            "<br>",
            "<div class=controls>",
            "</div>",
            "<img src=/x>",
        ),
        *("<", ">", "&lt;", "&", '"', "-->", "<ul>", "<li>", "<use xlink:href='/x'/>"),
    ]
)


@given(st.lists(_PARTS, max_size=30).map("".join))
def test_no_address_of_elsewhere_is_left(page: str) -> None:
    """In whatever order the parts of a page come, also where they are not closed."""
    left = one_view(page, place)
    assert not re.search(r"""(?:href|src|action)\s*=\s*['"]?/x""", left)
