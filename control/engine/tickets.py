"""What goes through the door: whose call a request is, what is to be done about it, and the numbers that go with it."""

from typing import NamedTuple

from control.policy.codes import ABORTED, CALL_ENDED, DISPATCHED, PLACED
from control.policy.tables import Ints
from control.twin.acts import NOTHING

ASKED = (DISPATCHED, ABORTED, CALL_ENDED, PLACED)  # journal entries that are orders


class Identity(NamedTuple):
    """Whose call a request is."""

    workflow: str | None = None  # None: a lone request
    kind: str = ""
    stage: str = ""
    tenant: str = ""
    slo_s: float | None = None  # from the workflow's first request to its deadline
    session: str | None = None  # conversation whose context it continues
    is_last: bool = False
    matched: str = ""  # the header or field that named the workflow
    ttft_s: float | None = None  # from the request to its first token, where that alone was promised


class Order(NamedTuple):
    """What is to be done about a call."""

    kind: int  # codes.DISPATCHED, ABORTED; PLACED where it went to a simulated instance; CALL_ENDED
    call: int  # its number
    instance: int  # row
    cause: int
    is_prefill: bool = False  # only to prefill there


def numbers(*values: int) -> Ints:
    """The numbers that go with a deed."""
    array = NOTHING.copy()
    array[: len(values)] = values
    return array
