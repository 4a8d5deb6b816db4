"""Options of the policy in force, alike for every command that runs one."""

import math
from typing import Any, NamedTuple

import click

from control.cli.options import together


class Rule(NamedTuple):
    """How a policy decides, apart from its name."""

    alpha: float
    form: str
    aging_s: float
    conversations: Any  # policy.rules.Conversations


rule_options = together(
    click.option(
        "--alpha", type=float, default=0.5, show_default=True, help="0 balances the load, 1 takes the fastest GPU."
    ),
    click.option("--form", default="paper", show_default=True, help="HexGen-Flow's score: of its paper or artifact."),
    click.option(
        "--aging",
        "aging_s",
        type=float,
        default=math.inf,
        metavar="SECONDS",
        help="Under least laxity, nobody overtakes a call that waited longer. Absent: off.",
    ),
    click.option(
        "--need",
        default="observed",
        show_default=True,
        help="KV a decoder must have free for a conversation: observed (what it holds) or oracle (its peak).",
    ),
    click.option(
        "--idle-ttl",
        "idle_ttl_s",
        type=float,
        default=math.inf,
        metavar="SECONDS",
        help="Drop a conversation's KV that was idle for longer. Absent: keep it.",
    ),
    click.option(
        "--router",
        default="injected",
        show_default=True,
        help="How ampd routes later turns: injected (wrong by chance) or slack (by predicted lengths).",
    ),
    click.option(
        "--error",
        "error_percent",
        type=float,
        default=10.0,
        show_default=True,
        metavar="PERCENT",
        help="Of ampd: wrong turns, or the relative error of predicted lengths.",
    ),
)


def taken(options: dict[str, Any]) -> Rule:
    """The rule that rule_options state, taken out of `options`."""
    from control.policy.rules import Conversations

    alpha, form, aging_s = (options.pop(name) for name in ("alpha", "form", "aging_s"))
    need, router = options.pop("need"), options.pop("router")
    share, idle_ttl_s = options.pop("error_percent") / 100.0, options.pop("idle_ttl_s")
    return Rule(alpha, form, aging_s, Conversations(need, router, share, idle_ttl_s))
