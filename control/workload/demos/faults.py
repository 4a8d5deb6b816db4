"""Scenarios in which something happens to the fleet: failures, slowness, caps, wrong guesses, too little KV."""

from control.workload.agents import AgentShape
from control.workload.scenario import QUICK_AGENTS, TOOL_AGENTS, Act, Scenario, Step

#: Agents of many turns with short answers and quick tools: most of their time goes to prefill.
SHORT_ANSWERS = AgentShape(
    turns_min=8,
    turns_max=14,
    appended_mean=600.0,
    appended_sigma=0.6,
    output_mean=60.0,
    output_sigma=0.6,
    think_median_s=1.0,
    think_sigma=0.5,
    think_most_s=5.0,
)

FAULTS = (
    Scenario(
        "instance-failure",
        "demo-mixed",
        "Two GPUs fail and come back",
        "The mix of demo-mixed at a steady rate. After three minutes a host with an H100 and an A100 is lost with all "
        "it held; after five it is back, empty.",
        rate=1.6,
        agent_share=0.15,
        agents=QUICK_AGENTS,
        script=(
            Act(180.0, "kill", {"instance": "h100-0"}, "a host fails: its H100"),
            Act(185.0, "kill", {"instance": "a100-0"}, "a host fails: its A100"),
            Act(300.0, "revive", {"instance": "h100-0"}, "the H100 is back with an empty cache"),
            Act(305.0, "revive", {"instance": "a100-0"}, "the A100 is back with an empty cache"),
        ),
        story=(
            Step("A fleet in order", "Note P95 and attainment. At 180 s h100-0 and a100-0 will fail.", "fleet"),
            Step(
                "Two GPUs less",
                "Their calls begin again elsewhere, and the other GPUs take their load. See who is late.",
                "debt",
                180.0,
            ),
            Step(
                "Back again",
                "Both start empty and draw work at once: attainment returns within a minute, the P95 of five minutes "
                "later.",
                "fleet",
                300.0,
            ),
        ),
    ),
    Scenario(
        "slow-gpu",
        "hexgen-homo",
        "A GPU turns slow without failing",
        "Text-to-SQL goes round robin over four equal A100. After two minutes one of them takes four times as long "
        "for everything; from 300 s on calls are dispatched by estimated time.",
        rate=0.1,
        agent_share=0.0,
        policy="rr-fcfs",
        script=(
            Act(120.0, "slow", {"instance": "a100-0", "factor": 4.0}, "an A100 runs at a quarter of its speed"),
            Act(300.0, "policy", {"policy": "hexgen"}, "calls are dispatched by estimated time"),
        ),
        story=(
            Step("Four equal GPUs", "Each gets as many calls, and that is fair. Note P95.", "fleet"),
            Step(
                "One of them is slow",
                "a100-0 still gets every fourth call. It has not failed, yet nearly every workflow has to wait for it.",
                "queues",
                120.0,
            ),
            Step(
                "Dispatch by time",
                "hexgen weighs what each GPU would take now: a100-0 gets less, and P50 comes down. What waited for it "
                "ends late. Set rr-fcfs again to see the difference.",
                "fleet",
                300.0,
            ),
        ),
    ),
    Scenario(
        "wrong-predictions",
        "conserve-a40",
        "Routing by predictions that are wrong",
        "AMPD decides turn by turn which tier prefills, by predicted lengths; here four of five later turns are sent "
        "to the wrong one. ConServe predicts nothing.",
        rate=0.9,
        agent_share=1.0,
        policy="ampd",
        ampd_error=0.8,
        agent_tenants=("coding", "research"),
        agents=SHORT_ANSWERS,
        story=(
            Step(
                "Turns that travel",
                "A turn that is sent back takes its history along. Open a conversation: its turns hold transfers.",
                "conversations",
            ),
            Step(
                "Who pays for it",
                "First prompts and wrong turns queue on the prefiller, a40-0, while the decoders have room.",
                "queues",
                150.0,
            ),
            Step(
                "Predict nothing",
                "On Fleet choose conserve and Apply: later turns stay where their KV is, and workflows take two "
                "thirds of the time.",
                "fleet",
                300.0,
            ),
        ),
    ),
    Scenario(
        "kv-squeeze",
        "kv-squeeze",
        "Too little KV for the conversations",
        "Agents on decoders with a quarter of the KV that ConServe's have: contexts that wait for their tools fill "
        "it, and other conversations are held.",
        rate=0.2,
        agent_share=1.0,
        policy="conserve",
        agent_tenants=("coding", "research"),
        agents=TOOL_AGENTS,
        script=(
            Act(
                240.0,
                "retention",
                {"retention": {"need": "observed", "idle_ttl_s": 5.0}},
                "contexts idle for longer than 5 s are dropped",
            ),
        ),
        story=(
            Step("The cache fills", "Idle contexts hold KV while their tools run. Watch the pinned share.", "kv"),
            Step(
                "Held",
                "Conversations that find no decoder with room for their context are held, first come first served.",
                "conversations",
                120.0,
            ),
            Step(
                "Keep idle contexts for less long",
                "From 240 s on a context idle for 5 s is dropped: hardly any is held, but turns compute their history "
                "again, for more watts. Try other limits.",
                "conversations",
                240.0,
            ),
        ),
    ),
    Scenario(
        "power-cap",
        "conserve-a40",
        "The same work for fewer watts",
        "Agent conversations on four A40. After three minutes the decoders are capped, after six the prefiller too: "
        "decoding is bound by memory and hardly notices.",
        rate=0.3,
        agent_share=1.0,
        policy="conserve",
        agent_tenants=("coding", "research"),
        agents=TOOL_AGENTS,
        script=(
            Act(180.0, "power_cap", {"tier": "decode", "cap_w": 150.0}, "the decoders are capped at 150 W"),
            Act(360.0, "power_cap", {"tier": "prefill", "cap_w": 200.0}, "the prefiller is capped at 200 W"),
        ),
        story=(
            Step("Uncapped", "Note watts and tokens per joule, and where the joules go.", "power"),
            Step(
                "Decoders at half their power",
                "Watts fall and tokens per joule rise, while P95 moves little: decoding waits for memory.",
                "power",
                180.0,
            ),
            Step(
                "The prefiller too",
                "Prefill is bound by compute and pays for its cap. See the predicted effect of other caps before you "
                "apply one.",
                "power",
                360.0,
            ),
        ),
    ),
)
