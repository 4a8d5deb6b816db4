"""Conversations keep every law: KV is conserved, every call ends once, nothing stays set aside, joules sum up."""

from hypothesis import given
from hypothesis import strategies as st

from control.policy.codes import CONVERSATION_POLICIES
from tests.support.failures import Order, disturbed, orders
from tests.support.scenes import Scene, examples, scenes


@examples(200)
@given(scene=scenes(policies=CONVERSATION_POLICIES), exact=st.booleans(), happens=orders(least=0))
def test_laws_hold_whatever_happens(scene: Scene, exact: bool, happens: list[Order]) -> None:
    disturbed(scene, exact, happens)
