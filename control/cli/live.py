"""`headway up`, `headway engine`, `headway dashboard`: the live processes."""

import os
from collections.abc import Callable
from typing import Any, TypeVar

import click

from control.config import EngineSettings, GatewaySettings
from control.errors import SettingError

F = TypeVar("F", bound=Callable[..., Any])

db_option = click.option(
    "--db", envvar="HEADWAY_DB", help="Store: a file or a database URL. Default: your data folder."
)


def gateway_options(command: F) -> F:
    """Where requests come in when the fleet has real servers."""
    for option in (
        click.option("--gateway-host", default="127.0.0.1", show_default=True, help="Address that takes requests."),
        click.option("--gateway-port", type=int, default=8080, show_default=True, help="Its port; 0: any free one."),
        click.option("--agent-token", envvar="HEADWAY_AGENT_TOKEN", help="Bearer token of the power agents."),
    ):
        command = option(command)
    return command


@click.command()
@db_option
@gateway_options
@click.option("--demo", "scenario", default="demo-mixed", show_default=True, help="Scenario to run.")
@click.option("--trace", help="Replay a trace file once instead of a scenario.")
@click.option("--rate", type=float, help="Workflows per second for --trace. Absent: recorded times.")
@click.option("--fleet", help="Fleet file or built-in name. Default: the scenario's.")
@click.option("--policy", help="Scheduling policy to start with. Default: the scenario's.")
@click.option("--alpha", type=float, default=0.5, show_default=True)
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--speed", type=float, default=1.0, show_default=True, help="Simulated seconds per second.")
@click.option("--fresh", is_flag=True, help="Do not go on from the state the store holds.")
@click.option("--parent", type=int, hidden=True, help="End when this process is no longer the parent.")
def engine(
    db: str | None,
    fresh: bool,
    parent: int | None,
    gateway_host: str,
    gateway_port: int,
    agent_token: str | None,
    **settings: Any,
) -> int:
    """Run the engine alone: it drives the fleet and writes the store.

    A fleet with real servers takes requests over HTTP instead of a scenario.
    """
    from control.policy.codes import policy_codes
    from control.service import run_engine, set_up_logging

    set_up_logging()
    if settings["policy"] is not None:
        policy_codes(settings["policy"])
    if settings["rate"] is not None and settings["trace"] is None:
        raise SettingError(f"--rate = {settings['rate']:g} needs --trace: a scenario has its own rate")
    serving = GatewaySettings(gateway_host, gateway_port, agent_token=agent_token)
    return run_engine(db, EngineSettings(**settings), fresh, parent, serving)


@click.command()
@db_option
@click.option("--port", type=int, help="Port of the dashboard. Default: 8501 or the next free one.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--headless", is_flag=True, help="Do not open a browser.")
def dashboard(db: str | None, port: int | None, host: str, headless: bool) -> int:
    """Run the dashboard alone, on a store that an engine writes."""
    from control.cli.processes import Supervisor, chosen_port, dashboard_process

    place = chosen_port(host, port)
    return Supervisor([dashboard_process(db, host, place, engine="external")], host, place, headless).run()


@click.command()
@db_option
@gateway_options
@click.option("--demo", "scenario", default="demo-mixed", show_default=True, help="Scenario to run.")
@click.option("--port", type=int, help="Port of the dashboard. Default: 8501 or the next free one.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--headless", is_flag=True, help="Do not open a browser.")
@click.option("--speed", type=float, help="Simulated seconds per second.  [default: 1]")
@click.option("--seed", type=int, help="Seed of all randomness.  [default: 0]")
@click.option("--fleet", help="Fleet file or built-in name. Default: the scenario's.")
@click.option("--policy", help="Scheduling policy to start with. Default: the scenario's.")
@click.option("--alpha", type=float, help="Alpha to start with.  [default: 0.5]")
@click.option("--fresh", is_flag=True, help="Do not go on from the state the store holds.")
def up(
    db: str | None,
    port: int | None,
    host: str,
    headless: bool,
    fresh: bool,
    gateway_host: str,
    gateway_port: int,
    agent_token: str | None,
    **settings: Any,
) -> int:
    """Open the live dashboard: an engine and a dashboard, one command; ctrl-C ends both."""
    from control.cli.processes import Supervisor, chosen_port, dashboard_process, engine_process
    from control.model.fleet import load_fleet
    from control.policy.codes import policy_codes
    from control.workload.scenarios import scenario

    given = {name: value for name, value in settings.items() if value is not None}
    checked = EngineSettings(**given)
    policy_codes(checked.policy or scenario(checked.scenario).policy)
    load_fleet(checked.fleet or scenario(checked.scenario).fleet)
    GatewaySettings(gateway_host, gateway_port)
    place = chosen_port(host, port)
    options = [f"--{'demo' if name == 'scenario' else name}={value}" for name, value in given.items()]
    options += [f"--gateway-host={gateway_host}", f"--gateway-port={gateway_port}"]
    if agent_token:
        os.environ["HEADWAY_AGENT_TOKEN"] = agent_token  # not an option: every user of the machine sees those
    parts = [engine_process(db, options, fresh), dashboard_process(db, host, place, engine="external")]
    return Supervisor(parts, host, place, headless).run()
