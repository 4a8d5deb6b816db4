"""`headway mock-vllm`: a server that speaks vLLM's wire and needs no GPU."""

from typing import Any

import click

from control.cli.options import say_if_cold, seed_option
from control.errors import SettingError


@click.command("mock-vllm")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", type=int, default=8100, show_default=True, help="Port to listen on; 0 takes a free one.")
@click.option(
    "--name", "names", multiple=True, help="Model it serves; may be given again.  [default: --model, else mock]"
)
@click.option("--gpu", help="GPU of the catalogue, with --model: token times come from the simulator.")
@click.option("--model", help="Model of the catalogue.")
@click.option("--ttft-ms", type=float, help="Without --gpu: ms to the first token.  [default: 50]")
@click.option("--tpot-ms", type=float, help="Without --gpu: ms from token to token.  [default: 10]")
@click.option("--seats", type=int, default=256, show_default=True, help="Requests that run at once (max_num_seqs).")
@click.option("--kv-tokens", type=int, help="KV capacity in tokens.  [default: the catalogue's, else 400000]")
@click.option("--max-model-len", type=int, help="Context in tokens.  [default: the catalogue's, else 32768]")
@click.option(
    "--mean-output", type=float, default=128.0, show_default=True, help="Tokens of an answer left open, mean."
)
@click.option("--max-queued", type=int, help="Requests in flight above which 503 is answered.  [default: no limit]")
@seed_option
@click.option("--speed", type=float, default=1.0, show_default=True, help="Simulated seconds per second.")
@click.option("--role", default="mixed", show_default=True, help="mixed, prefill or decode.")
@click.option("--scheduling-policy", default="fcfs", show_default=True, help="fcfs or priority.")
@click.option("--lease-s", type=float, default=30.0, show_default=True, help="Seconds a prefiller keeps KV.")
@click.option("--fault", "faults", multiple=True, metavar="NAME[=VALUE]", help="What goes wrong; may be given again.")
def mock_vllm(faults: tuple[str, ...], **given: Any) -> None:
    """Serve simulated answers the way vLLM does, until ctrl-C."""
    from control.adapters.mock.faults import parse
    from control.adapters.mock.serve import run
    from control.adapters.mock.settings import MockSettings

    if given["gpu"] is not None:
        for name in ("ttft_ms", "tpot_ms"):
            if given[name] is not None:
                raise SettingError(f"--{name.replace('_', '-')} and --gpu: expected one of them, not both")
    values = {name: value for name, value in given.items() if value is not None}
    settings = MockSettings(faults=parse(faults), **values)
    if settings.gpu is not None:
        say_if_cold()
    run(settings, click.echo)
