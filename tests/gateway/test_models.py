"""One engine serves one model."""

import pytest

from control.errors import FleetError
from control.gateway.upstream import check_models
from control.model.fleet import Fleet, InstanceSpec


def fleet(*models: tuple[str, str | None, str | None]) -> Fleet:
    """A fleet of (model, served_model, url)."""
    rows = [
        InstanceSpec(f"s{k}", "H100", model, served_model=served, url=url)
        for k, (model, served, url) in enumerate(models)
    ]
    return Fleet("mixed", tuple(rows))


def test_servers_of_unlike_models_are_refused_by_name() -> None:
    with pytest.raises(FleetError, match=r"s0 serves Llama.*, s1 serves Qwen3"):
        check_models(fleet(("Llama-3.1-8B", None, "http://a"), ("Qwen3-0.6B", None, "http://b")))


def test_one_name_or_a_simulated_instance_of_another_model_will_do() -> None:
    check_models(fleet(("Llama-3.1-8B", "m", "http://a"), ("Qwen3-0.6B", "m", "http://b")))
    check_models(fleet(("Llama-3.1-8B", None, "http://a"), ("Qwen3-0.6B", None, None)))
