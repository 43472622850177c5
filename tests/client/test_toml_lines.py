"""Line numbers of TOML keys, for messages."""

import pytest

from deniable.protocol.toml_lines import line_of, locate

TEXT = '''top = 1
"quoted key" = 2
[metrics.a]
type = "boolean"
text = """
[metrics.fake]
type = "no"
"""
values = [
    "x = 1",
]
[metrics . "b.c"]  # spaced
inner.deep = 1
[[list]]
one = 1
[[list]]
two = 2
'''


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("top",), 1),
        (("quoted key",), 2),
        (("metrics", "a"), 3),
        (("metrics", "a", "type"), 4),
        (("metrics", "a", "values"), 9),
        (("metrics", "b.c"), 12),
        (("metrics", "b.c", "inner", "deep"), 13),
        (("list",), 14),
        (("list", "0"), 14),
        (("list", "0", "one"), 15),
        (("list", "1"), 16),
        (("list", "1", "two"), 17),
        (("list", "1", "one"), 16),
        (("list", "2"), 14),
        (("metrics", "a", "absent"), 3),
        (("metrics", "fake"), None),
        (("absent",), None),
    ],
)
def test_lines(path, line):
    """Each key has its own line, or that of the nearest thing around it."""
    assert line_of(locate(TEXT), path) == line


def test_text_that_is_not_toml():
    """Whatever stands on the lines, locating never raises."""
    assert locate("a.'b = 1\n[[[x\n = \n[]\n") == {}
