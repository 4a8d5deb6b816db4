"""The `headway` command. One module per family of subcommands; `entry.main` is where it begins."""
