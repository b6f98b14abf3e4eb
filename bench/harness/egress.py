"""The egress rows: many destinations, dead and slow ones, and how they delay other mail. postrider alone.

A row is one or several measurements, each on fresh instances. A waiting time runs from the reply to the final dot at
the sender to the RCPT of the recipient at the sink. Both run on one machine with one clock.
"""

import os
import re
import time
from contextlib import contextmanager
from dataclasses import dataclass

import egress_report
import machine
from attempts import SLOWEST_PER_SECOND, CountingSink, Silence, Trickle, burst, drained
from machine import Failure
from postrider import Postrider
from traffic import RUN_S_MAX

# Address of host number 0; there are two million: bench/load/numbered_hosts.rs.
HOSTS = "127.128.0.0"
EVERYWHERE = "0.0.0.0"
SESSIONS = 100
SETTLE_S = 1.0

# Number of domains at scale 1.
DOMAINS = 100_000
HALF_RATE_MESSAGES = 20_000
SLOW_EVERY = 100
QUERY_TYPES = {"a": 1, "mx": 15, "txt": 16, "aaaa": 28}
DESTINATIONS = 1_000
DESTINATION_MESSAGES = 60_000
DEAD = ("none", "refused", "silent")
TARPIT_HOSTS = 200
# Connections that postrider initially opens to an unknown host.
CONNECTIONS_AT_FIRST = 5
TARPIT_BACKLOG = 100_000
HEALTHY_PER_SECOND = 50
TRICKLE_S = 60
TRICKLE_S_MIN = 20
NEWSLETTERS = 1_000_000
NEWSLETTER_BATCH = 100
NEWSLETTER_TEXT_BYTES, NEWSLETTER_HTML_BYTES = 1_024, 2_048
TRANSACTIONAL_PER_SECOND = 10
STORED_DOMAINS = 100_000

# Default number of rounds; rows with differences near the noise have more.
ROUNDS = {"many-domains": 1, "dead-destination": 12, "tarpits": 3, "newsletters": 1, "start": 5}


def run(context, work):
    """Measures one row once. Returns (rows, failures)."""
    found, failures = [], []
    try:
        for row in WORKS[work](context):
            found.append({"peer": "postrider", "work": work, "round": context.round, **row})
            print(egress_report.progress(found[-1]), flush=True)
    except (Failure, OSError) as failure:
        failures.append(f"{work}, round {context.round + 1}: {failure}")
    return found, failures


def scaled(context, count, at_least=1):
    return max(at_least, int(count * context.args.scale))


@contextmanager
def server(context, work, variant=""):
    context.sink = (EVERYWHERE, 25 if context.isolated else 2600)
    peer = Postrider(context, work, variant)
    try:
        peer.start()
        yield peer
    finally:
        peer.stop()


@contextmanager
def sink(context, host=EVERYWHERE, addresses=1):
    opened = CountingSink(context.load, (host, context.sink[1]), addresses)
    try:
        yield opened
    finally:
        opened.stop()


# Many domains


def many_domains(context):
    """Sends one message to each of 100,000 domains: with cold caches, with warm caches, and at half that rate without
    and with one host in a hundred that sends one byte at a time. Slow hosts must not delay the others."""
    count = scaled(context, DOMAINS, 200)
    few = min(count, scaled(context, HALF_RATE_MESSAGES, 200))
    with server(context, "many-domains") as peer, sink(context) as hosts:
        for variant in ("cold", "warm"):
            figures = one_pass(context, (peer, hosts), variant, count)
            yield figures
        rate = max(10.0, figures["per_second"] / 2)
        yield one_pass(context, (peer, hosts), "half", few, rate)
        hosts.drip(SLOW_EVERY)
        yield one_pass(context, (peer, hosts), "slow", few, rate, SLOW_EVERY)


def one_pass(context, both, variant, count, per_second=None, slow_every=None):
    """Sends one message to each of `count` domains. Messages to slow hosts are neither awaited nor counted."""
    peer, hosts = both
    is_healthy = lambda rcpt: not slow_every or number_in(rcpt) % slow_every != 0  # noqa: E731
    healthy = count - (-(-count // slow_every) if slow_every else 0)
    asked_before = context.names.queries()
    shares = Shares(context, peer, hosts)
    rcpt = variant + "{n}@d{n}.hosts.bench.test"
    sent = burst(context.load, peer.relay, SESSIONS, count, rcpt, per_second=per_second)
    seconds = drained(hosts, healthy, sent)
    return {
        "variant": variant,
        "messages": count,
        "seconds": seconds,
        "per_second": healthy / seconds,
        "accepted_per_second": count / sent.seconds,
        **queries_each(context.names.queries() - asked_before, count),
        **sent.waits(hosts, is_healthy),
        **shares.found(),
        "memory_bytes": peer.peak_bytes(),
    }


def queries_each(query_counts, count):
    """DNS queries per message, and their types: an answer that was not cached is queried again."""
    by_type = {f"queries_{name}": query_counts[number] / count for name, number in QUERY_TYPES.items()}
    return {"queries_per_message": query_counts.total() / count, **by_type}


def number_in(rcpt):
    return int(re.search(r"@d(\d+)\.", rcpt)[1])


# One dead destination


def dead_destination(context):
    """Measures the throughput to 999 healthy destinations, alone and with as much mail for a dead one."""
    turn = context.round % len(DEAD)
    for kind in DEAD[turn:] + DEAD[:turn]:
        yield one_dead(context, kind)


def one_dead(context, kind):
    healthy = max(9, min(DESTINATIONS, scaled(context, DESTINATIONS * 10)) - 1)
    each = max(5, scaled(context, DESTINATION_MESSAGES) // healthy)
    domains = healthy if kind == "none" else healthy + 1
    with server(context, "dead-destination", kind) as peer, sink(context, HOSTS, healthy) as hosts:
        silence = Silence((last_address(healthy), context.sink[1])) if kind == "silent" else None
        try:
            warm = burst(context.load, peer.relay, SESSIONS, healthy, "warm-{n}@d{n}.hosts.bench.test")
            drained(hosts, healthy, warm)
            shares = Shares(context, peer, hosts)
            rcpt = "m{n}@d{d}.hosts.bench.test"
            sent = burst(context.load, peer.relay, SESSIONS, each * domains, rcpt, domains=domains)
            seconds = drained(hosts, each * healthy, sent)
            took = shares.found()
        finally:
            if silence:
                silence.close()
        is_healthy = lambda rcpt: number_in(rcpt) < healthy  # noqa: E731
        return {
            "variant": kind,
            "messages": each * healthy,
            "seconds": seconds,
            "per_second": each * healthy / seconds,
            "cpu_s_per_1000": took["cpu_s"] * 1000 / (each * healthy),
            **sent.waits(hosts, is_healthy),
            **took,
            "memory_bytes": peer.peak_bytes(),
        }


def last_address(number):
    return f"127.128.{number // 256}.{number % 256}"


# Tarpits


def tarpits(context):
    """Measures the waiting time of a healthy destination's mail beside a thousand connections that send one byte every
    three seconds, and a hundred thousand messages queued for those hosts."""
    hosts_count = scaled(context, TARPIT_HOSTS, 2)
    backlog = scaled(context, TARPIT_BACKLOG, 10 * hosts_count)
    connections = hosts_count * CONNECTIONS_AT_FIRST
    with server(context, "tarpits") as peer, sink(context) as hosts:
        yield {"variant": "usual", **healthy_trickle(context, peer, hosts, "usual")}
        rcpt = "slow{n}@d{d}.tarpits.bench.test"
        burst(context.load, peer.relay, SESSIONS, backlog, rcpt, domains=hosts_count)
        # Work left over from accepting must not count towards the tarpit measurement.
        machine.quieten(peer.roots)
        machine.wait_until(lambda: hosts.count()["open_tarpits"] >= connections, f"connection {connections} to a tarpit")
        figures = healthy_trickle(context, peer, hosts, "beside")
        after = hosts.count()
        waiting = backlog - after["tarpit_messages"] - after["open_tarpits"]
        yield {"variant": "tarpits", **figures, "open": after["open_tarpits"], "waiting": waiting}


def healthy_trickle(context, peer, hosts, name):
    warm = burst(context.load, peer.relay, 1, 20, name + "-warm{n}@d0.hosts.bench.test", per_second=HEALTHY_PER_SECOND)
    drained(hosts, 20, warm)
    count = int(HEALTHY_PER_SECOND * trickle_s(context))
    rcpt = name + "{n}@d0.hosts.bench.test"
    shares = Shares(context, peer, hosts)
    sent = burst(context.load, peer.relay, 8, count, rcpt, per_second=HEALTHY_PER_SECOND)
    drained(hosts, count, sent)
    return {**sent.waits(hosts), **shares.found(), "memory_bytes": peer.peak_bytes()}


def trickle_s(context):
    return max(TRICKLE_S_MIN, TRICKLE_S * min(1, context.args.scale))


# Newsletters


def newsletters(context):
    """Drains a million newsletters of one account while another account sends ten messages a second to the same host
    and ten to another host."""
    count = scaled(context, NEWSLETTERS, NEWSLETTER_BATCH) // NEWSLETTER_BATCH * NEWSLETTER_BATCH
    with server(context, "newsletters") as peer, sink(context) as hosts:
        with trickles(context, peer, "usual") as usual:
            time.sleep(TRICKLE_S_MIN)
            yield from waited(peer, hosts, usual, "alone: ")
        peer.reload(paused=True)
        time.sleep(SETTLE_S)
        before = hosts.count()["messages"]
        filled = fill_newsletters(context, peer, count)
        if hosts.count()["messages"] > before:
            raise Failure("delivery continued although it was paused")
        shares = Shares(context, peer, hosts)
        peer.reload(paused=False)
        hosts.wait(before + 1)
        started = time.monotonic()
        with trickles(context, peer, "meanwhile") as meanwhile:
            hosts.wait(before + count)
            seconds = time.monotonic() - started
            drain = {"messages": count, "per_second": count / seconds, "filled_per_second": filled, **shares.found()}
            reported = peer.first_attempt_p99_ms("transactional")
            for row in waited(peer, hosts, meanwhile, ""):
                yield {**drain, **row, "reported_p99_ms": reported}


@contextmanager
def trickles(context, peer, name):
    """Starts one background load to the host of the newsletters and one to another host."""
    hosts, running = {"the same host": "d0", "another host": "d1"}, {}
    try:
        for title, host in hosts.items():
            running[title] = Trickle(context.load, peer, name, host, TRANSACTIONAL_PER_SECOND)
        yield running
    finally:
        for trickle in running.values():
            trickle.process.kill()


def waited(peer, hosts, running, prefix):
    """Stops the background loads. Returns the waiting times of their messages."""
    sent = {title: trickle.stop() for title, trickle in running.items()}
    hosts.quieten()
    for title, messages in sent.items():
        yield {"variant": prefix + title, **messages.waits(hosts), "memory_bytes": peer.peak_bytes()}


def fill_newsletters(context, peer, count):
    started = time.monotonic()
    size = ["--text-bytes", str(NEWSLETTER_TEXT_BYTES), "--html-bytes", str(NEWSLETTER_HTML_BYTES)]
    more, rcpt = ["--category", "newsletter", *size], "reader{n}@d0.hosts.bench.test"
    timeout = RUN_S_MAX + count / SLOWEST_PER_SECOND
    context.load.post(peer.api, peer.key, SESSIONS, count, NEWSLETTER_BATCH, rcpt, timeout, more)
    return count / (time.monotonic() - started)


# Start


def start(context):
    """Time from exec to the first 200 of /healthz, with an empty store and with 100,000 domains with keys."""
    if context.round:
        return
    count = scaled(context, STORED_DOMAINS)
    peers = {name: Postrider(context, "start", name) for name in ("empty", "filled")}
    try:
        for name, peer in peers.items():
            peer.start()
            account = peer.account
            peer.end()
            if name == "filled":
                context.load.fill(peer.data_directory(), account, count)
        for number in range(context.args.rounds or ROUNDS["start"]):
            for name in sorted(peers, reverse=number % 2 == 1):
                domains = count if name == "filled" else 0
                yield {"variant": name, "round": number, "domains": domains, **one_start(peers[name])}
    finally:
        for peer in peers.values():
            peer.stop()


def one_start(peer):
    machine.drop_caches()
    seconds = peer.launch_timed()
    row = {"ready_ms": seconds * 1000, "memory_bytes": peer.peak_bytes()}
    peer.end()
    return row


# CPU shares


@dataclass
class Shares:
    """Shares of the machine's CPU time during a row: postrider's and the load's."""

    context: object
    peer: object
    hosts: object

    def __post_init__(self):
        self.started_at = time.monotonic()
        self.before = self.spent()

    def spent(self):
        measuring = [self.hosts.process.pid, self.context.names.process.pid]
        return machine.cpu_s(self.peer.roots), machine.cpu_s(measuring) + machine.cpu_s_of_ended_children()

    def found(self):
        seconds = (time.monotonic() - self.started_at) * os.cpu_count()
        peer, measuring = (after - before for after, before in zip(self.spent(), self.before))
        return {"cpu_s": peer, "cpu_share": peer / seconds, "measuring_cpu_share": measuring / seconds}


WORKS = {
    "many-domains": many_domains,
    "dead-destination": dead_destination,
    "tarpits": tarpits,
    "newsletters": newsletters,
    "start": start,
}
