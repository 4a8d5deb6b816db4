"""What one session receives over the network: bytes, and how old the data is."""

from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median
from typing import NamedTuple

LIVE_PATH = "/api/live"
AGE_HEADER = "x-data-age"


class Answer(NamedTuple):
    """One answer with live data."""

    at_s: float  # on any clock that does not jump
    size: int  # bytes on the wire, headers included
    age_s: float  # of the data when it was sent


@dataclass
class Traffic:
    """What came since the last look."""

    frames_bytes: int = 0
    answers: list[Answer] = field(default_factory=list)

    def figures(self, seconds: float) -> dict[str, float | None]:
        """What was counted over `seconds` s."""
        bytes_in = self.frames_bytes + sum(answer.size for answer in self.answers)
        return {
            "refreshes_per_s": len(self.answers) / seconds,
            "bytes_per_refresh": bytes_in / max(1, len(self.answers)),
            "age_max_s": max(ages_seen(self.answers), default=None),
            "age_p50_s": median(answer.age_s for answer in self.answers) if self.answers else None,
        }


def ages_seen(answers: list[Answer]) -> list[float]:
    """How old the data got before each next answer, s: its age at the answer, and the wait for the next."""
    waits = [later.at_s - answer.at_s for answer, later in pairwise(answers)]
    return [answer.age_s + wait for answer, wait in zip(answers, [*waits, 0.0], strict=False)]
