"""Scenarios whose story is the load: how much comes, how it varies, and who sends it."""

from control.workload.scenario import QUICK_AGENTS, TOOL_AGENTS, Act, Scenario, Step

LOADS = (
    Scenario(
        "demo-mixed",
        "demo-mixed",
        "Text-to-SQL of two tenants, with agents beside it",
        "Two tenants ask text-to-SQL questions, one with twice the time of the other, while some agents hold "
        "conversations with quick tools between their turns. The rate swings slowly by a fifth.",
        rate=1.65,  # 70 % of the 2.35 workflows/s at which the fleet saturates under hexgen
        agent_share=0.15,
        swing=0.2,
        agents=QUICK_AGENTS,
        story=(
            Step(
                "Eight GPUs of five kinds",
                "Every row is an instance. Move α towards 0 to balance the load or towards 1 to favour fast GPUs, "
                "press Apply, and follow P95 behind the mark.",
                "fleet",
            ),
            Step(
                "Where the time goes",
                "Debt is time beyond the plan, by cause. Open a late workflow to see its calls one after the other.",
                "debt",
                200.0,
            ),
            Step(
                "Let it find α by itself",
                "Press Run tuning: what came in the last ten minutes is replayed with other values of α, and the best "
                "one is proposed with a confidence band.",
                "tuning",
                400.0,
            ),
        ),
    ),
    Scenario(
        "burst",
        "demo-mixed",
        "Bursts over a calm load",
        "The mix of demo-mixed at half of what the fleet holds, with a minute at three times that every five minutes.",
        rate=1.2,
        agent_share=0.15,
        burst_every_s=300.0,
        burst_s=60.0,
        burst_factor=3.0,
        agents=QUICK_AGENTS,
        story=(
            Step(
                "Calm",
                "Queues are short and nearly every workflow is in time. Note P95 and attainment.",
                "fleet",
            ),
            Step(
                "The burst",
                "For a minute three times as much arrives. Look who waits on which GPU, and that calls with little "
                "time left are served first.",
                "queues",
                240.0,
            ),
            Step(
                "What is left of it",
                "The backlog drains, the debt stays. See which tenant paid; the next burst comes at 540 s.",
                "debt",
                300.0,
            ),
        ),
    ),
    Scenario(
        "step-load",
        "hexgen-hetero-1",
        "Text-to-SQL whose load steps up sixfold",
        "Text-to-SQL workflows at 0.05 a second, far below what the fleet holds, and from the tenth minute on at 0.3, "
        "well above it. Dispatched by the artifact's form of the score, for which the alpha that suits the one does "
        "not suit the other.",
        rate=0.05,
        agent_share=0.0,
        steps=((600.0, 6.0),),
        form="artifact",
        length_s=1800.0,
        story=(
            Step(
                "A quiet start",
                "Little arrives, so the fastest GPU is always free. Set the tuner to auto and let it watch.",
                "tuning",
            ),
            Step(
                "Six times the load",
                "From 600 s on more arrives than the fleet holds: queues grow, and the α of before is wrong now.",
                "queues",
                600.0,
            ),
            Step(
                "The tuner answers",
                "The drift starts a run; the new α comes with the P95 it promises, and is judged by it later.",
                "tuning",
                900.0,
            ),
        ),
    ),
    Scenario(
        "diurnal",
        "demo-mixed",
        "A day of load in twenty minutes",
        "The mix of demo-mixed, its rate swinging from a fifth to nine fifths of its mean every twenty minutes.",
        rate=1.2,
        agent_share=0.15,
        swing=0.8,
        period_s=1200.0,
        agents=QUICK_AGENTS,
        length_s=1200.0,
        story=(
            Step("Noon", "The load climbs to its crest at 300 s. Watch where the queues form first.", "queues"),
            Step("Evening", "The load falls below its mean; the backlog of the crest drains.", "debt", 500.0),
            Step(
                "Night",
                "At a fifth of the mean most GPUs idle, and still draw: compare idle joules with the others.",
                "power",
                800.0,
            ),
        ),
    ),
    Scenario(
        "two-tenants",
        "demo-few-seats",
        "Two tenants, one in a hurry",
        "Half of the text-to-SQL workflows are interactive, half are reports with five times the time, on GPUs of 16 "
        "seats. Until 300 s calls are served as they come, then by laxity.",
        rate=2.0,
        agent_share=0.0,
        tenants=("interactive", "reports"),
        slo_scales=(1.0, 5.0),
        policy="wb-fcfs",
        script=(Act(300.0, "policy", {"policy": "hexgen"}, "calls with the least time left go first"),),
        story=(
            Step(
                "First come, first served",
                "Both tenants wait alike, though one cannot afford to: its workflows are late, the others early.",
                "debt",
            ),
            Step(
                "Least laxity first",
                "The same dispatch, another order in the queues: calls of the tenant in a hurry move to the front.",
                "queues",
                300.0,
            ),
            Step(
                "Who pays now",
                "The debt of the interactive tenant shrinks, and the reports still arrive within their time.",
                "debt",
                420.0,
            ),
        ),
    ),
    Scenario(
        "text2sql-agents",
        "demo-mixed",
        "Text-to-SQL with agents beside it",
        "Short text-to-SQL calls share the GPUs with agents whose contexts grow and wait in the KV cache for their "
        "tools.",
        rate=1.2,
        agent_share=0.4,
        swing=0.1,
        agents=TOOL_AGENTS,
        agent_tenants=("coding", "research"),
        story=(
            Step(
                "Two kinds of work",
                "Agents send few calls with long contexts, text-to-SQL many short ones. See who waits for whom.",
                "queues",
            ),
            Step(
                "Contexts that wait",
                "Between turns an agent's KV stays cached while nobody needs the room. See which GPU holds how much.",
                "kv",
                180.0,
            ),
            Step(
                "Keep agents where their KV is",
                "On Fleet choose session-affinity and Apply: turns return to their cache, watts fall and tokens per "
                "joule rise.",
                "fleet",
                300.0,
            ),
        ),
    ),
    Scenario(
        "text2sql-tenants",
        "hexgen-hetero-1",
        "Text-to-SQL of two tenants on four large GPUs",
        "Only text-to-SQL workflows, half of them with twice the time, at a rate the fleet can just hold.",
        rate=0.12,
        agent_share=0.0,
        story=(
            Step("Four replicas of a large model", "Workflows of some sixteen calls take a minute or more.", "fleet"),
            Step("Stages", "Revisions are rare and long. Open a workflow and follow its stages.", "debt", 200.0),
            Step("Tune α", "Press Run tuning once two hundred calls are on record.", "tuning", 400.0),
        ),
    ),
)
