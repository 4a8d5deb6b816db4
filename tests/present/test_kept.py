"""Pages say how much the store keeps: the numbers are those that it goes by."""

from control.present import decisions, ledger, workflows
from pages._ui import story, talk
from storage.retention import RECEIPTS_KEPT, TIMELINES_KEPT, WORKFLOWS_KEPT
from tests.present.test_decisions import row


def test_what_is_said_to_be_kept_is_kept() -> None:
    assert f"newest {WORKFLOWS_KEPT:,} " in ledger.unknown(1)
    assert f"newest {WORKFLOWS_KEPT:,} " in workflows.nobody(workflows.Filter(tenant="x"))
    assert f"newest {RECEIPTS_KEPT:,} " in decisions.no_receipt(row(candidates=None, filtered=None))
    for page in (story, talk):
        with open(str(page.__file__), encoding="utf-8") as file:
            assert f"newest {TIMELINES_KEPT:,}" in file.read()
