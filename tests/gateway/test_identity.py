"""Whose call a request is, by headers and body, as clients and frameworks send them."""

from typing import Any

import pytest
from multidict import CIMultiDict

from control.engine.tickets import Identity
from control.gateway.identity import identity_of
from control.gateway.openai import BadRequestError


def who(headers: dict[str, str] | None = None, **body: Any) -> Identity:
    """The identity of a request with these headers and fields."""
    return identity_of(CIMultiDict(headers or {}), body)


def test_a_request_without_a_name_is_alone() -> None:
    assert who(messages=[{"role": "user", "content": "hello"}]) == Identity()


def test_our_own_headers_say_all() -> None:
    found = who(
        {
            "X-Headway-Workflow": "w",
            "X-Headway-Kind": "text2sql",
            "X-Headway-Stage": "revise",
            "X-Headway-Tenant": "acme",
            "X-Headway-SLO-s": "12.5",
            "X-Headway-Final": "1",
        }
    )
    assert found == Identity("w", "text2sql", "revise", "acme", 12.5, None, True, "x-headway-workflow")


@pytest.mark.parametrize("name", ["x-session-id", "x-dynamo-session-id", "X-Claude-Code-Session-Id", "session_id"])
def test_session_headers_name_a_conversation(name: str) -> None:
    found = who({name: "s"})
    assert (found.workflow, found.session, found.matched) == ("s", "s", name.lower())


def test_the_first_name_wins_and_a_session_inside_a_workflow_stays_one() -> None:
    found = who({"x-headway-workflow": "w", "x-session-id": "s"}, session_id="b")
    assert (found.workflow, found.session, found.matched) == ("w", "s", "x-headway-workflow")


def test_bodies_may_name_it_too() -> None:
    assert who(session_id="b").matched == "session_id in the body"
    context = {"program_id": "p", "session_id": "s", "step_id": "plan", "deadline_seconds": 30}
    found = who(vllm_xargs={"agentic_context": context})
    assert found == Identity("p", "", "plan", "", 30.0, "s", False, "agentic_context.program_id")


@pytest.mark.parametrize("given", ["0", "-1", "nan", "inf", "1e308", "soon", ""])
def test_a_deadline_that_is_none_is_refused_in_our_own_header_and_passed_over_elsewhere(given: str) -> None:
    with pytest.raises(BadRequestError, match="a number of seconds > 0 is accepted"):
        who({"x-headway-workflow": "w", "x-headway-slo-s": given})
    context = {"program_id": "p", "deadline_seconds": given}
    assert who(vllm_xargs={"agentic_context": context}).slo_s is None


@pytest.mark.parametrize("name", ["x-headway-ttft-ms", "x-llm-d-slo-ttft-ms", "x-slo-ttft-ms"])
def test_a_promised_ttft_is_read_in_milliseconds(name: str) -> None:
    assert who({name: "250"}).ttft_s == 0.25


def test_calls_of_one_system_prompt_are_of_one_stage() -> None:
    def stage(system: Any, role: str = "system", **headers: str) -> str:
        head = {f"x-headway-{key}": value for key, value in headers.items()}
        return who(head, messages=[{"role": role, "content": system}, {"role": "user", "content": "x"}]).stage

    assert stage("You revise SQL.") == stage("You revise SQL.", "developer") != ""
    assert stage("You revise SQL.") != stage("You test SQL.")
    assert stage("You revise SQL.", stage="revise") == "revise"
    assert stage("hello", "user") == stage([{"type": "text"}]) == stage("") == ""
