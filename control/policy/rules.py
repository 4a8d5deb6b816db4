"""The policy in force as a table, out of names and settings as people write them."""

import math
from typing import NamedTuple

import numpy as np

from control.errors import SettingError
from control.policy.codes import NEEDS, ROUTERS, policy_codes
from control.policy.tables import POLICY, Table

QUEUE_FLOOR = 0.1  # floor of t_queue in units of t_comp (HexGen-Flow leaves it open)


class Conversations(NamedTuple):
    """Settings of the policies that place conversations (ConServe, sections 2 and 5)."""

    need: str = "observed"  # KV a decoder must have free: what is seen, or the peak to come ("oracle")
    router: str = "injected"  # how AMPD routes later turns: wrong by chance, or by slack ("slack")
    error: float = 0.1  # share of wrong turns, or relative error of predicted lengths
    idle_ttl_s: float = math.inf  # an idle context is dropped after so long, s; inf: never


USUAL = Conversations()


def check_conversations(settings: Conversations) -> None:
    """Refuse settings outside their bounds.

    Raises:
        SettingError: naming the setting and what is accepted.
    """
    if settings.need not in NEEDS:
        raise SettingError(f"need = {settings.need!r}: expected one of {', '.join(NEEDS)}")
    if settings.router not in ROUTERS:
        raise SettingError(f"router = {settings.router!r}: expected one of {', '.join(ROUTERS)}")
    if not 0.0 <= settings.error <= 1.0:
        raise SettingError(f"error = {settings.error}: expected a share from 0 to 1")
    if not settings.idle_ttl_s > 0.0:
        raise SettingError(f"idle_ttl_s = {settings.idle_ttl_s}: expected a number of seconds > 0")


def policy_table(
    name: str,
    alpha: float,
    form: str = "paper",
    aging_s: float = math.inf,
    conversations: Conversations = USUAL,
) -> Table:
    """The policy in force, POLICY [1].

    Raises:
        SettingError: an unknown name or form, alpha outside [0, 1], aging_s not above 0, or see check_conversations.
    """
    if not aging_s > 0.0:
        raise SettingError(f"aging_s = {aging_s}: expected a number of seconds > 0")
    if not 0.0 <= alpha <= 1.0:
        raise SettingError(f"alpha = {alpha}: expected a number from 0 (balance the load) to 1 (fastest GPU)")
    check_conversations(conversations)
    row = np.zeros(1, POLICY)
    row["dispatch"], row["queue"] = policy_codes(name, form)
    row["aging_s"] = aging_s
    row["alpha"] = alpha
    row["floor"] = QUEUE_FLOOR
    row["need"] = NEEDS.index(conversations.need)
    row["router"] = ROUTERS.index(conversations.router)
    row["error"] = conversations.error
    row["idle_ttl_s"] = conversations.idle_ttl_s
    return row
