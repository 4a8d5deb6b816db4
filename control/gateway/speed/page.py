"""The result as a section of the page of benchmarks."""

from pathlib import Path
from typing import Any

BEGIN, END = "<!-- headway bench gateway: begin -->", "<!-- headway bench gateway: end -->"
COLUMNS = ("added P50", "added P99", "CPU s / 1,000 streams", "x pass-through", "requests/s", "CPU ms / request")
FIGURES = (
    ("first_chunk_added_p50_ms", "{:.2f} ms"),
    ("first_chunk_added_p99_ms", "{:.2f} ms"),
    ("cpu_s_per_1000_streams", "{:.2f}"),
    ("cpu_ratio_to_pass_through", "{:.2f}"),
    ("requests_per_s", "{:,.0f}"),
    ("cpu_ms_per_request", "{:.3f}"),
)
BUSY = 0.5  # processes that want to run, per core, before the measurement begins
HEAD = """# Benchmarks

Every figure is written by the command named beside it; run the command again to rewrite its section. The twin and the
tuner are measured by `headway bench twin` and `headway bench tune`.

"""


def cells(name: str, row: dict[str, Any]) -> list[str]:
    """One system as cells of a table; a dash for what it does not have."""
    is_direct = "first_chunk_added_p50_ms" not in row
    shown = [form.format(row[key]) if key in row else "–" for key, form in FIGURES]
    if is_direct:
        shown[2] = shown[5] = "–"
    return [name, *shown]


def section(result: dict[str, Any]) -> str:
    """The section on the gateway, Markdown."""
    rows = [["system", *COLUMNS], ["---", *["---:"] * len(COLUMNS)]]
    rows += [cells(name, row) for name, row in result["systems"].items()]
    table = "\n".join("| " + " | ".join(row) + " |" for row in rows)
    return f"{BEGIN}\n## The gateway's overhead\n\n{setting(result)}\n\n{table}\n\n{verdicts(result)}\n{END}"


def setting(result: dict[str, Any]) -> str:
    """How it was measured, and where."""
    where, direct = result["machine"], result["systems"]["direct"]
    return (
        f"Written by `{result['command']}` on {result['date']}: {where['processor']}, {where['cores']} cores, Python "
        f"{where['python']}; load average {where['load_average_before']:.1f} before, "
        f"{where['load_average_after']:.1f} after.\n\n"
        "Two simulated servers (32 chunks, 5 ms apart), the system, and the client are processes of one machine and "
        f"share its cores. Medians over {result['rounds']} rounds, in each of which every system has its turn: "
        f"{result['rate_per_s']:g} new streams/s (Poisson) for {result['stream_s']:g} s, then requests for one token, "
        f"not streamed, over {result['connections']} busy connections. *Added* is the time to the first chunk less "
        f"that of direct requests in the same round (P50 {direct['first_chunk_p50_ms']:.2f} ms, P99 "
        f"{direct['first_chunk_p99_ms']:.2f} ms). CPU time is that of the system's process and its children; "
        "headway's is the whole engine: gateway, scheduler, record and store." + busy(where)
    )


def busy(where: dict[str, Any]) -> str:
    """What to make of figures from a machine that had other work."""
    if where["load_average_before"] <= BUSY * where["cores"]:
        return ""
    return (
        "\n\n**The machine was busy with other work:** waiting for a processor is most of what was measured. Compare "
        "nothing but CPU time with figures from elsewhere."
    )


def verdicts(result: dict[str, Any]) -> str:
    """The targets, met or not, and what was left out."""
    lines = []
    for target in result["targets"]:
        limit = f"{'≤' if target['at_most'] else '≥'} {target['limit']:,g}"
        lines.append(f"- {target['name']} {limit}: {target['value']:,.3g}, {'met' if target['met'] else '**missed**'}")
    lines += [f"- {name} was left out: {reason}" for name, reason in result["skipped"].items()]
    return "\n".join(lines)


def rewrite(path: Path, result: dict[str, Any]) -> None:
    """Put the section into the page in place of the one before; a new page where there is none."""
    put_section(path, BEGIN, END, section(result))


def put_section(path: Path, begin: str, end: str, text: str) -> None:
    """Put `text` in place of what lies between the lines `begin` and `end`, at the end of the page where neither is."""
    page = path.read_text(encoding="utf-8") if path.exists() else HEAD + f"{begin}\n{end}\n"
    before, begun, rest = page.partition(begin)
    _, ended, after = rest.partition(end)
    if not begun or not ended:
        before, after = page.rstrip() + "\n\n", "\n"
    path.write_text(before + text + after, encoding="utf-8")
