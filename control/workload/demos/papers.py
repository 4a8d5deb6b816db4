"""Scenarios with the set-up of the two papers, and agents on their fleet."""

from control.workload.agents import AgentShape
from control.workload.scenario import TOOL_AGENTS, Act, Scenario, Step

#: Five turns with hardly any time between them, as ConServe replays them (sections 3 and 5).
FIVE_TURNS = AgentShape(turns_min=5, turns_max=5, think_median_s=0.5, think_sigma=0.5, think_most_s=5.0)

PAPERS = (
    Scenario(
        "hexgen-paper",
        "hexgen-hetero-1",
        "HexGen-Flow: text-to-SQL on unlike GPUs",
        "The fleet Hetero-1 of the paper under text-to-SQL workflows; round robin until 400 s, then HexGen-Flow's two "
        "levels.",
        rate=0.12,
        agent_share=0.0,
        policy="rr-fcfs",
        script=(Act(400.0, "policy", {"policy": "hexgen"}, "HexGen-Flow's dispatch and queues take over"),),
        length_s=1200.0,
        story=(
            Step(
                "Round robin on unlike GPUs",
                "Each GPU gets as many calls, so workflows wait for the slowest one. Compare the lengths of the "
                "queues.",
                "queues",
            ),
            Step(
                "Two levels",
                "Calls go where estimated time and load say, and the least laxity is served first. P95 turns.",
                "fleet",
                400.0,
            ),
            Step(
                "Find α",
                "The paper sets α by replaying the trace. Press Run tuning to do the same on what came here.",
                "tuning",
                800.0,
            ),
        ),
    ),
    Scenario(
        "conserve-paper",
        "conserve-a40",
        "ConServe: one prefiller, three decoders",
        "The four A40 of the paper under conversations of five turns; every turn prefilled anew and moved until 300 "
        "s, then ConServe.",
        rate=0.5,
        agent_share=1.0,
        policy="full-disagg",
        agent_tenants=("coding", "research"),
        agents=FIVE_TURNS,
        script=(Act(300.0, "policy", {"policy": "conserve"}, "conversations stay on the decoder that holds their KV"),),
        story=(
            Step(
                "Every turn anew",
                "Under full disaggregation the prefiller computes the whole context of every turn again. See its "
                "queue.",
                "queues",
            ),
            Step(
                "One move a conversation",
                "ConServe prefills the first turn apart, moves its KV once, and appends later turns where it is.",
                "conversations",
                300.0,
            ),
            Step(
                "Joules saved",
                "What is not computed again draws nothing. Compare tokens per joule before and after the mark.",
                "power",
                420.0,
            ),
        ),
    ),
    Scenario(
        "agents",
        "conserve-a40",
        "Agents that hold conversations, prefill apart from decode",
        "Agent conversations of two tenants on one prefiller and three decoders: each is prefilled once, its KV moved "
        "to one decoder and kept there while its tools run.",
        rate=0.3,  # 70 % of the 0.42 workflows/s from which on calls are held under conserve
        agent_share=1.0,
        swing=0.2,
        policy="conserve",
        agent_tenants=("coding", "research"),
        agents=TOOL_AGENTS,
        story=(
            Step("Prefill apart", "The first prompt is computed on a40-0, then its KV moves once.", "conversations"),
            Step("KV that waits", "Idle contexts stay pinned while tools run. See who holds most.", "kv", 180.0),
            Step("Cap the decoders", "See what a cap would do to each tier before you apply it.", "power", 360.0),
        ),
    ),
    Scenario(
        "agents-a40",
        "conserve-a40",
        "Agent conversations on four A40",
        "Only agent conversations: a heavy first prompt, then light turns with thinking time between them.",
        rate=1.0,
        agent_share=1.0,
        story=(
            Step("More than it holds", "At a conversation a second the fleet falls behind. See its queues.", "queues"),
            Step("Place whole conversations", "On Fleet choose conserve and Apply.", "fleet", 200.0),
            Step(
                "What is held", "Conversations that find no room wait, first come first served.", "conversations", 400.0
            ),
        ),
    ),
)
