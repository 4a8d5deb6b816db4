"""How tests are shared out to several workers.

By their names: the groups of pytest-xdist 3.8 are marks that it writes into the names, which pytest 9.2 forbids.
"""

from xdist.scheduler import LoadScopeScheduling

from tests.support.shares import share


class Shares(LoadScopeScheduling):
    """Hands out shares in the order of collection, each to the next worker that is free."""

    def _split_scope(self, nodeid: str) -> str:
        """The share that a test belongs to."""
        return share(nodeid)
