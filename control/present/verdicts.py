"""What came of a tuning run: was its α set, did the promise hold, and what did the review of a broken one say?

`result` is that of a stored run of kind "tune"; one made before reviews were kept lacks `outcome` and `review`.
"""

from collections.abc import Mapping
from typing import Any

from control.present.cells import Cell
from control.present.units import NOTHING

Result = Mapping[str, Any]
_DECISIONS = {
    "applied": Cell("✓ applied", "good"),
    "suggested": Cell("suggested", "amber"),
    "kept": Cell("not changed", "muted"),
    "rolled_back": Cell("↩ rolled back", "late"),
}
_HELD = Cell("✓ kept its promise", "good")
_REVIEWED = Cell(
    "✓ kept after review", "good", hint="Slower than promised, but the α before would have been slower yet"
)
_BROKEN = Cell("▲ broke its promise", "amber")


def missed(result: Result) -> bool:
    """Whether the realised P95 is above the predicted band."""
    realised_s = result.get("realised_p95_s")
    return realised_s is not None and realised_s > result["predicted_high_s"]


def stood_review(result: Result) -> bool:
    """Whether a missed promise is the load's doing: what came, replayed, is slower under the α before."""
    review = result.get("review")
    if not missed(result) or not review or result["decision"] == "rolled_back":
        return False
    return bool(review["after_p95_s"] < review["before_p95_s"])


def fate(result: Result) -> Cell:
    """What became of the run's α, in two or three words."""
    if result["decision"] != "applied" or result.get("realised_p95_s") is None:
        return _DECISIONS.get(result["decision"], Cell(str(result["decision"])))
    if not missed(result):
        return _HELD
    return _REVIEWED if stood_review(result) else _BROKEN


def why(result: Result) -> str:
    """The reason of the decision, and what came of it once that is known."""
    said = [str(result[key]) for key in ("reason", "outcome") if result.get(key)]
    return ". Then: ".join(said).replace("alpha", "α") or NOTHING
