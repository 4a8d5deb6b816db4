"""What came of a tuned α: a promise kept, one broken, and one that the load broke."""

from typing import Any

import pytest

from control.present import tuning, verdicts
from tests.support import details

BROKEN = 31.0  # s; the band of the promise ends at 26.9 s
BETTER = {"after_p95_s": 30.1, "before_p95_s": 33.0}
WORSE = {"after_p95_s": 30.1, "before_p95_s": 25.0}


def result(**changed: Any) -> dict[str, Any]:
    return details.run(**changed)[1]


@pytest.mark.parametrize(
    ("changed", "text", "kind"),
    [
        ({}, "✓ applied", "good"),
        ({"decision": "suggested"}, "suggested", "amber"),
        ({"decision": "kept"}, "not changed", "muted"),
        ({"decision": "new in a later version"}, "new in a later version", ""),
        ({"realised_p95_s": 25.0, "review": None}, "✓ kept its promise", "good"),
        ({"realised_p95_s": BROKEN}, "▲ broke its promise", "amber"),
        ({"realised_p95_s": BROKEN, "review": None}, "▲ broke its promise", "amber"),
        ({"realised_p95_s": BROKEN, "review": WORSE}, "▲ broke its promise", "amber"),
        ({"realised_p95_s": BROKEN, "review": BETTER}, "✓ kept after review", "good"),
        ({"realised_p95_s": BROKEN, "review": WORSE, "decision": "rolled_back"}, "↩ rolled back", "late"),
    ],
)
def test_each_end_of_a_run_has_its_own_words(changed: dict[str, Any], text: str, kind: str) -> None:
    cell = verdicts.fate(result(**changed))
    assert (cell.text, cell.kind) == (text, kind)


def test_a_run_kept_after_review_raises_no_alarm() -> None:
    runs = [{"params": details.run()[0], "result": result(realised_p95_s=BROKEN, review=r)} for r in (BETTER, WORSE)]
    reviewed, broken = (row[5] for row in tuning.history(runs, ["", ""]).rows)
    assert (reviewed.text, reviewed.kind) == ("31 s", "num")
    assert (broken.text, broken.kind) == ("▲ 31 s", "num amber")
    assert tuning.score(runs) == "0 of 2 at or below the predicted band, 1 above it but kept after review (hollow)"
    marker = tuning.promise(runs)["data"][1]["marker"]
    assert (marker["color"], marker["symbol"]) == (["@blue", "@amber"], ["circle-open", "circle"])


def test_the_reason_goes_on_with_what_came_of_it() -> None:
    told = result(reason="P95 expected 12.4 % lower", outcome="P95 31.0 s; α 0.20 gives 33.0 s")
    assert verdicts.why(told) == ("P95 expected 12.4 % lower. Then: P95 31.0 s; α 0.20 gives 33.0 s")
    assert verdicts.why(result(reason="")) == "–"
