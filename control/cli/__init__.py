"""The `headway` command. One module per family of subcommands; `main` is the entry point."""

from control.cli.main import main

__all__ = ["main"]
