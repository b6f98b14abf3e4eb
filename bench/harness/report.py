"""Medians and the table of results."""

from statistics import median

TITLES = {
    "accept": "accept durably",
    "relay": "relay end to end",
    "dkim": "relay with DKIM",
    "submission": "submission, STARTTLS + AUTH",
    "domains": "1,000 domains",
    "inbound": "inbound with authentication",
    "inbound-large": "inbound with authentication, 25 MB",
    "post": "POST /emails, signed, relayed",
    "post-held": "POST /emails, kept",
    "batch-held": "POST /emails/batch, kept",
    "idle": "idle sessions",
    "inbound-idle": "idle sessions at the MX listener",
}
IDLE = ("idle", "inbound-idle")
MIB = 1024 * 1024


def medians(results):
    """One entry per (work, sessions, peer): the median of each figure over the rounds."""
    groups = {}
    for row in results:
        # The peers hold different numbers of idle sessions but share a row.
        sessions = 0 if row["work"] in IDLE else row["sessions"]
        groups.setdefault((row["work"], sessions, row["peer"]), []).append(row)
    found = []
    for (work, sessions, peer), rows in groups.items():
        figures = [key for key, value in rows[0].items() if isinstance(value, float | int) and key != "round"]
        entry = {"work": work, "peer": peer, "rounds": len(rows)}
        entry |= {key: median(row[key] for row in rows) for key in figures}
        found.append(entry | {"sessions": sessions or rows[0]["sessions"], "group": sessions})
    return found


def progress(row, rounds):
    name = f"round {row['round'] + 1}/{rounds}  {TITLES[row['work']]:<28} {row['sessions']:>5}  {row['peer']:<9}"
    if row["work"] in IDLE:
        return f"{name} {row['bytes_per_session'] / 1024:8.1f} KiB each"
    return f"{name} {row['per_second']:8,.0f}/s  {row['cpu_s_per_1000']:.2f} CPU s per 1,000"


def table(results, peers):
    """Rates and costs side by side. The ratio is postrider's value divided by Postfix's: for rates, more is better."""
    found = {(row["work"], row["group"], row["peer"]): row for row in medians(results)}
    keys = sorted({key[:2] for key in found}, key=lambda key: (list(TITLES).index(key[0]), key[1]))
    both = len(peers) == 2
    lines = [header(peers, both)]
    for key in keys:
        if key[0] not in IDLE:
            lines.append(line(key, [found.get((*key, peer)) for peer in peers], both))
    lines.append("")
    for key in keys:
        if key[0] in IDLE:
            lines += idle_lines(key, [found.get((*key, peer)) for peer in peers], peers)
        else:
            lines += latency_lines(key, [found.get((*key, peer)) for peer in peers], peers)
    return "\n".join(lines)


def header(peers, both):
    text = f"{'':<28} {'sessions':>8}"
    for title in ("messages/s", "CPU s/1,000", "peak MiB"):
        for peer in peers:
            text += f" {peer + ' ' + title:>22}"
        if both and title != "peak MiB":
            text += f" {'ratio':>6}"
    return text


def line(key, rows, both):
    text = f"{TITLES[key[0]]:<28} {key[1]:>8}"
    for figure, form, unit in (("per_second", ",.0f", 1), ("cpu_s_per_1000", ".2f", 1), ("memory_bytes", ",.0f", MIB)):
        values = [row[figure] / unit if row else None for row in rows]
        for value in values:
            text += f" {format(value, form) if value is not None else '-':>22}"
        if both and figure != "memory_bytes":
            ok = None not in values and values[0]
            text += f" {format(values[1] / values[0], '.2f') if ok else '-':>6}"
    return text


def latency_lines(key, rows, peers):
    return [
        f"{TITLES[key[0]]}: {peer} latency to the acknowledgement p50 {row['p50_ms']:.1f} ms, p99 {row['p99_ms']:.1f} ms"
        + (f", {row['accepted_per_second']:,.0f} acknowledged a second" if "accepted_per_second" in row else "")
        for peer, row in zip(peers, rows)
        if row and "p50_ms" in row
    ]


def idle_lines(key, rows, peers):
    return [
        f"{TITLES[key[0]]}: {peer} {row['bytes_per_session'] / 1024:,.1f} KiB each with {row['sessions']:,} open,"
        f" {row['memory_bytes'] / MIB:,.0f} MiB in all"
        f" (and {row['kernel_bytes_per_session'] / 1024:,.1f} KiB in the kernel, both ends of the sockets)"
        for peer, row in zip(peers, rows)
        if row
    ]
