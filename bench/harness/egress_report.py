"""Table of the egress rows, and their requirements."""

from statistics import median

MIB = 1024 * 1024
# (work, variant): row title.
TITLES = {
    ("many-domains", "cold"): "domains: cold caches",
    ("many-domains", "warm"): "domains: again",
    ("many-domains", "half"): "domains: half rate",
    ("many-domains", "slow"): "  and 1 of 100 hosts drips",
    ("dead-destination", "none"): "healthy destinations alone",
    ("dead-destination", "refused"): "  and one that refuses",
    ("dead-destination", "silent"): "  and one that does not answer",
    ("tarpits", "usual"): "a healthy destination",
    ("tarpits", "tarpits"): "  beside tarpits",
    ("newsletters", "alone: the same host"): "transactional, alone",
    ("newsletters", "alone: another host"): "  to another host",
    ("newsletters", "the same host"): "  beside newsletters there",
    ("newsletters", "another host"): "  beside them, another host",
    ("start", "empty"): "start, empty store",
    ("start", "filled"): "start, domains with keys",
}
COLUMNS = (  # title, figure, form, unit
    ("messages", "messages", ",.0f", 1),
    ("messages/s", "per_second", ",.0f", 1),
    ("wait p50 ms", "wait_p50_ms", ",.1f", 1),
    ("p99 ms", "wait_p99_ms", ",.1f", 1),
    ("longest ms", "wait_max_ms", ",.0f", 1),
    ("250 p99 ms", "accepted_p99_ms", ",.1f", 1),
    ("queries each", "queries_per_message", ".3f", 1),
    ("ready ms", "ready_ms", ",.0f", 1),
    ("peak MiB", "memory_bytes", ",.0f", MIB),
    ("CPU", "cpu_share", ".0%", 1),
    ("load's CPU", "measuring_cpu_share", ".0%", 1),
)
# Above this CPU share of the load, a rate depends on the load as much as on postrider.
MEASURING_SHARE_MAX = 0.5
BUSY = 0.9


def medians(results):
    """One entry per (work, variant): the median of each figure over the rounds."""
    groups = {}
    for row in results:
        groups.setdefault((row["work"], row["variant"]), []).append(row)
    found = []
    for (work, variant), rows in groups.items():
        figures = [key for key, value in rows[0].items() if isinstance(value, float | int) and key != "round"]
        entry = {"work": work, "variant": variant, "rounds": len(rows)}
        found.append(entry | {key: median(row[key] for row in rows) for key in figures})
    return found


def progress(row):
    figures = [f"{title} {cell(row, figure, form, unit)}" for title, figure, form, unit in COLUMNS if figure in row]
    return f"round {row['round'] + 1}  {TITLES[row['work'], row['variant']]:<29} {', '.join(figures)}"


def cell(row, figure, form, unit):
    return format(row[figure] / unit, form) if figure in row else "-"


def table(results):
    """One line per row, then the requirements and whether they are met."""
    found = {(row["work"], row["variant"]): row for row in medians(results)}
    lines = [f"{'egress, postrider alone':<29}" + "".join(f" {title:>12}" for title, *_ in COLUMNS)]
    for key, title in TITLES.items():
        if key in found:
            lines.append(f"{title:<29}" + "".join(f" {cell(found[key], *column[1:]):>12}" for column in COLUMNS))
    lines.append("")
    for judged in (many_domains, dead_destination, tarpits, newsletters, start):
        lines += judged(found, results)
    return "\n".join(lines + bottleneck(found))


def verdict(text, holds):
    return f"{'met' if holds else 'NOT met'}: {text}"


def many_domains(found, _):
    rows = {variant: found.get(("many-domains", variant)) for variant in ("cold", "warm", "half", "slow")}
    lines = []
    if rows["warm"]:
        peak = max(row["memory_bytes"] for row in rows.values() if row) / MIB
        domains, queries = rows["cold"]["messages"], rows["warm"]["queries_per_message"]
        lines.append(verdict(f"{domains:,.0f} domains in {peak:,.0f} MiB of memory (at most 1,024)", peak < 1024))
        types = ", ".join(f"{name.upper()} {rows['warm'][f'queries_{name}']:.3f}" for name in ("mx", "txt", "a", "aaaa"))
        lines.append(verdict(f"{queries:.3f} DNS queries a message, warm (below 1.2): {types}", queries < 1.2))
    if rows["slow"]:
        usual, slow = (rows[variant]["wait_p99_ms"] for variant in ("half", "slow"))
        lines.append(f"with slow hosts the other domains' mail waits {slow:.1f} ms (p99), without {usual:.1f} ms")
    return lines


def dead_destination(found, results):
    """The ratio within each round, because the machine may be faster or slower in another round."""
    rates, costs = ({kind: {} for kind in ("none", "refused", "silent")} for _ in range(2))
    for row in results:
        if row["work"] == "dead-destination":
            rates[row["variant"]][row["round"]] = row["per_second"]
            costs[row["variant"]][row["round"]] = row["cpu_s_per_1000"]
    alone, lines = rates["none"], []
    for kind in ("refused", "silent"):
        less = [1 - rate / alone[number] for number, rate in rates[kind].items() if number in alone]
        if less:
            more = median(cost / costs["none"][number] - 1 for number, cost in costs[kind].items() if number in alone)
            text = f"a dead destination ({kind}) lowers the rate of the others by {median(less):.1%} (limit 2 %)"
            text += f"; per round: {spread(less, '.1%')}; CPU time per message: {more:+.1%}"
            lines.append(verdict(text, median(less) < 0.02))
    if len(alone) > 1:
        lines.append(f"noise: without a dead destination the rounds are {spread(alone.values(), ',.0f')} messages/s")
    return lines


def spread(values, form):
    return f"{min(values):{form}} to {max(values):{form}}"


def tarpits(found, _):
    usual, beside = found.get(("tarpits", "usual")), found.get(("tarpits", "tarpits"))
    if not (usual and beside):
        return []
    ratio = beside["wait_p99_ms"] / max(usual["wait_p99_ms"], 0.001)
    text = (
        f"with {beside['open']:,.0f} tarpit connections and {beside['waiting']:,.0f} messages queued for them,"
        f" p99 is {ratio:.2f} times the normal one (limit 2)"
    )
    return [verdict(text, ratio <= 2)]


def newsletters(found, _):
    lines = []
    for host in ("the same host", "another host"):
        row = found.get(("newsletters", host))
        if row:
            text = f"while {row['messages']:,.0f} newsletters drain, transactional mail to {host} waits"
            text += f" {row['wait_p99_ms']:.1f} ms (p99 of {row['samples']:,.0f}; at most 100)"
            text += f"; /metrics, which includes the time to accept, shows {row['reported_p99_ms']:.1f} ms"
            lines.append(verdict(text, row["wait_p99_ms"] <= 100))
    return lines


def start(found, results):
    times = {
        name: [row["ready_ms"] for row in results if (row["work"], row["variant"]) == ("start", name)]
        for name in ("empty", "filled")
    }
    if not all(times.values()):
        return []
    empty, filled = (median(times[name]) for name in ("empty", "filled"))
    samples = ", ".join(f"{name} {spread(values, '.0f')} ms" for name, values in times.items())
    noise = max(times["empty"]) - min(times["empty"])
    text = f"a store with {found['start', 'filled']['domains']:,.0f} domains starts in {filled:.0f} ms, an empty one in"
    return [verdict(f"{text} {empty:.0f} ms ({samples})", filled - empty <= max(noise, 0.1 * empty))]


def bottleneck(found):
    """A note for rows where the load took a large part of a busy machine: their rate is not postrider's limit."""
    return [
        f"the load took {row['measuring_cpu_share']:.0%} of a busy machine and may limit the rate of: {TITLES[key].strip()}"
        for key, row in found.items()
        if "per_second" in row
        and row["measuring_cpu_share"] + row["cpu_share"] > BUSY
        and row["measuring_cpu_share"] > MEASURING_SHARE_MAX
    ]
