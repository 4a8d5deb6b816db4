"""Which tests several workers may share out one by one, and which only together."""

#: Tests that start processes and wait for what these do in time: one worker runs them all, in turn.
LIVE = tuple(f"tests/{name}" for name in ("e2e/", "service/", "pages/test_navigation.py", "cli/test_signals.py"))
LIVE += ("tests/cli/test_warm.py",)
#: Files whose fixtures cost more than their tests: one worker runs all of a file.
TOGETHER = ("tests/tuning/test_report.py", "tests/storage/test_postgres.py")
#: Long ones are begun early, so that the workers end at about the same time.
LONG = ("tests/parity/test_flags.py", "tests/laws/test_ledger.py", "tests/tuning/test_report.py")


def is_live(test: str) -> bool:
    """Whether the test of that name starts processes and times them."""
    return test.startswith(LIVE)


def rank(test: str) -> tuple[bool, bool]:
    """Tests of a lower rank begin earlier."""
    return not is_live(test), not test.startswith(LONG)


def share(test: str) -> str:
    """The name of what one worker runs as a whole: all live tests, a file, or the test alone."""
    if is_live(test):
        return "live"
    return test.partition("::")[0] if test.startswith(TOGETHER) else test
