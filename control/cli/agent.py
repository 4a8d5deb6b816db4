"""`headway agent`: power of a GPU host's GPUs over HTTP."""

import click

from control.config import within
from control.errors import SettingError

SHUTDOWN_S = 2.0  # given to answers under way once the agent is told to end


@click.command()
@click.option("--port", type=int, default=9410, show_default=True, help="Port to listen on.")
@click.option("--host", default="0.0.0.0", show_default=True, help="Address to listen on.")
@click.option("--token", envvar="HEADWAY_AGENT_TOKEN", show_envvar=True, help="Bearer token that limits need.")
@click.option("--read-only", is_flag=True, help="Take no power limits; then no token is needed.")
@click.option("--simulate", type=int, metavar="N", help="Serve N made-up GPUs instead of this machine's.")
def agent(port: int, host: str, token: str | None, read_only: bool, simulate: int | None) -> None:
    """Serve power, energy and power limits of this machine's GPUs.

    GET /metrics (Prometheus text), /gpus (JSON), /health. POST /gpus/INDEX/power_limit {"watts": W} with the token.
    Setting a limit needs the rights of root.
    """
    from aiohttp import web

    from control.adapters.agent import check_safe, make_app
    from control.adapters.nvml import LocalGpus
    from control.adapters.power import GpuHost
    from control.adapters.simulated_gpus import SimulatedGpus

    within("--port", port, 1, 65535)
    check_safe(host, token, caps=not read_only)
    if simulate is not None:
        within("--simulate", simulate, 1, 64)
    gpus: GpuHost = LocalGpus() if simulate is None else SimulatedGpus(simulate)
    if gpus.reason is not None:
        click.echo(f"no GPUs: {gpus.reason}", err=True)

    def say(_: str) -> None:
        click.echo(f"serving {len(gpus.read())} GPUs on http://{host}:{port}", err=True)

    try:
        app = make_app(gpus, token, caps=not read_only)
        web.run_app(app, host=host, port=port, access_log=None, print=say, shutdown_timeout=SHUTDOWN_S)
    except OSError as error:
        raise SettingError(f"--host {host} --port {port}: cannot be listened on: {error.strerror or error}") from error
    finally:
        gpus.close()
