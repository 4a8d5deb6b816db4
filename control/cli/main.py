"""The group of subcommands, and how errors leave: one line on stderr and an exit code."""

import importlib
from collections.abc import Sequence

import click

from control.cli.entry import INTERRUPTED
from control.errors import HeadwayError

#: Subcommand -> (module, attribute). Modules load when their command runs: `headway --help` stays instant.
COMMANDS = {
    "up": ("control.cli.live", "up"),
    "engine": ("control.cli.live", "engine"),
    "dashboard": ("control.cli.live", "dashboard"),
    "sim": ("control.cli.sim", "sim"),
    "compare": ("control.cli.sim", "compare"),
    "tune": ("control.cli.tune", "tune"),
    "whatif": ("control.cli.whatif", "whatif"),
    "rehearse": ("control.cli.rehearse", "rehearse"),
    "runs": ("control.cli.runs", "runs"),
    "trace": ("control.cli.trace", "trace"),
    "scrape": ("control.cli.scrape", "scrape"),
    "agent": ("control.cli.agent", "agent"),
    "reproduce": ("control.cli.reproduce", "reproduce"),
    "bench": ("control.cli.bench", "bench"),
    "screenshots": ("control.cli.screenshots", "screenshots"),
    "mock-vllm": ("control.cli.mock", "mock_vllm"),
    "accuracy": ("control.cli.accuracy", "accuracy"),
    "calibrate": ("control.cli.calibrate", "calibrate"),
    "load": ("control.cli.load", "load"),
    "warm": ("control.cli.upkeep", "warm"),
    "doctor": ("control.cli.upkeep", "doctor"),
}


class Interrupted(click.ClickException):
    """Ctrl-C, told in one line."""

    exit_code = INTERRUPTED


class LazyGroup(click.Group):
    """A group that imports a subcommand's module only when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in the order of the table above."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The subcommand, or None where there is none of that name."""
        if cmd_name not in COMMANDS:
            return None
        module, attribute = COMMANDS[cmd_name]
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def invoke(self, ctx: click.Context) -> object:
        """Run the subcommand; ctrl-C leaves like any other error."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            raise Interrupted("interrupted") from error


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="headway")
def cli() -> None:
    """Schedule, watch and question a fleet of LLM inference instances."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code. Bad input is one line on stderr and 2."""
    try:
        result = cli.main(args=arguments, prog_name="headway", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return error.exit_code
    except click.UsageError as error:
        hint = error.ctx.command_path if error.ctx else "headway"
        click.echo(f"{one_line(error.format_message())} (see '{hint} --help')", err=True)
        return error.exit_code
    except click.ClickException as error:
        click.echo(one_line(error.format_message()), err=True)
        return error.exit_code
    except click.exceptions.Abort:
        click.echo("interrupted", err=True)
        return INTERRUPTED
    except HeadwayError as error:
        click.echo(one_line(str(error)), err=True)
        return error.exit_code
    except MemoryError as error:
        click.echo(f"not enough memory: {one_line(str(error)) or 'name a smaller size'}", err=True)
        return 1
    except OSError as error:
        click.echo(f"cannot write the output: {error.strerror or error}", err=True)
        return 1
    return result if isinstance(result, int) else 0


def one_line(message: str) -> str:
    """A message without line breaks."""
    return " ".join(message.split())
