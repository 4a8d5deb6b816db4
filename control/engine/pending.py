"""What the engine has to tell the store."""

from dataclasses import dataclass, field
from typing import Any


@dataclass
class Pending:
    """What waits for the next commit."""

    decisions: list[dict[str, Any]] = field(default_factory=list)
    workflows: list[dict[str, Any]] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)
    outcomes: list[dict[str, Any]] = field(default_factory=list)

    def put_before(self, later: "Pending") -> None:
        """Take in what has come since, behind what is here."""
        for name in ("decisions", "workflows", "events", "outcomes"):
            getattr(self, name).extend(getattr(later, name))
