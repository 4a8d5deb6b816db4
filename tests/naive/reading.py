"""The slow twin's objects, read from the tables of a world that has not run yet."""

from dataclasses import fields
from typing import Any

from control.twin.world import World
from tests.naive.costs import CostModel
from tests.naive.history import Kind, Step
from tests.naive.rules import Rules
from tests.naive.state import Call, Conversation, Instance, Workflow

CALL_INPUTS: tuple[str, ...] = ("workflow", "group", "step", "tenant", "input_tokens", "output_tokens", "shared_key")
CALL_INPUTS += ("shared_tokens", "stream_key", "history_tokens", "tool_s", "draw_a", "draw_b")
WORKFLOW_INPUTS = ("arrival_s", "slo_s", "tenant", "kind", "go_on")
INSTANCE_INPUTS: tuple[str, ...] = ("state", "max_num_seqs", "max_num_batched_tokens", "block_size", "blocks")
INSTANCE_INPUTS += ("watermark", "max_model_len", "caching", "share_weight", "role")


def read_calls(world: World) -> list[Call]:
    """All calls, none of them ready."""
    return [Call(row=r, **{name: row[name].item() for name in CALL_INPUTS}) for r, row in enumerate(world.calls)]


def read_workflows(world: World, calls: list[Call]) -> list[Workflow]:
    """All workflows, none of them arrived."""
    found = []
    for w, row in enumerate(world.workflows):
        mine = [call for call in calls if call.workflow == w]
        numbers = sorted({call.group for call in mine})
        groups = [[call for call in mine if call.group == number] for number in numbers]
        inputs = {name: row[name].item() for name in WORKFLOW_INPUTS}
        template = world.remaining[w].tolist()
        found.append(Workflow(row=w, coming=list(groups), groups=groups, template=template, **inputs))
    return found


def read_conversations(world: World, calls: list[Call]) -> list[Conversation]:
    """All conversations, kept nowhere; each call gets to know its own."""
    found = []
    for row in range(len(world.pins)):
        key = int(world.clock[0]["n_shared"]) + row
        mine = [call for call in calls if call.stream_key == key]
        found.append(Conversation(row, key, max((c.input_tokens + c.output_tokens for c in mine), default=0)))
        for call in mine:
            call.conversation = found[-1]
    return found


def read_rules(world: World) -> Rules:
    """The policy in force."""
    return Rules(**{field.name: world.policy[0][field.name].item() for field in fields(Rules)})


def read_instances(world: World, rules: Rules, calls: list[Call], conversations: list[Conversation]) -> list[Instance]:
    """All instances, empty."""
    found = []
    for i, row in enumerate(world.instances):
        settings: dict[str, Any] = {name: row[name].item() for name in INSTANCE_INPUTS}
        common = {"rules": rules, "all_calls": calls, "conversations": conversations}
        found.append(Instance(row=i, costs=CostModel.of(world, i), **common, **settings))
    return found


def read_steps(world: World) -> list[Step]:
    """All steps with what is declared of them."""
    names = ("seen", "mean_input", "mean_output", "mean_tool_s", "mean_exec_s", "mean_prefill_s", "drops")
    return [Step(*(row[name].item() for name in names)) for row in world.steps]


def read_kinds(world: World) -> list[Kind]:
    """All kinds of workflow with the templates that are declared."""
    return [
        Kind(int(row["declared"]), float(row["seen"]), template.tolist())
        for row, template in zip(world.kinds, world.templates, strict=True)
    ]
