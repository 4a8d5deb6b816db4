"""`python -m control.cli`: the `headway` command where no script is installed."""

import sys

from control.cli.entry import main

sys.exit(main())
