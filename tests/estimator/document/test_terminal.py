"""Documents in a terminal: the bars of estimates."""

import pytest

from deniable_estimator.answers.units import SHARES
from deniable_estimator.document.terminal import picture
from deniable_estimator.terminal.tables import estimate_cell


@pytest.mark.parametrize("top", [-0.58, 0.0])
def test_a_share_that_is_not_above_zero_has_an_empty_bar(top):
    """Also if the axis of a trend has no length, as where all of its shares are forged."""
    cell = estimate_cell(SHARES, (-0.6, -0.62, top), (0.0, top))
    assert cell.drawn is not None
    assert picture(*cell.drawn).plain == "┃".ljust(20)
