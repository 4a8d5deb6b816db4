"""How tests are shared out to several workers."""

from xdist.scheduler import LoadScopeScheduling

from tests.support.shares import share


class Shares(LoadScopeScheduling):
    """Hands out shares in the order of collection, each to the next worker that is free."""

    def _split_scope(self, nodeid: str) -> str:
        """The share that a test belongs to."""
        return share(nodeid)
