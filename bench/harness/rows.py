"""The rows of the table: what is sent, and when it counts as done.

A work is one configuration of a peer. Each round uses a fresh instance and runs the work's rows on it in order.
"""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import egress
import machine
from machine import Failure
from postfix import Postfix
from postrider import Postrider
from traffic import JUDGED_SENDERS, IdleSessions, Sink

PEERS = {"postfix": Postfix, "postrider": Postrider}
SETTLE_S = 0.5
WARM_UP = 50
SIGNATURES = {"postfix": 1, "postrider": 2}
IDLE_SESSIONS = {"postfix": 500, "postrider": 5000}
LARGE_BYTES = 25_000_000
LARGE_SENDERS = 4
SUBMISSION_SESSIONS = 20
DOMAIN_SESSIONS = 20

# Messages per row at scale 1: some seconds of work for Postfix, and at least one second for either peer.
MESSAGES = {
    "accept": {1: 4_000, 20: 16_000, 100: 16_000},
    "relay": {1: 4_000, 20: 8_000, 100: 8_000},
    "dkim": {1: 2_000, 20: 4_000, 100: 4_000},
    "submission": 3_000,
    "domains": 1_000,
    "inbound": {1: 500, 20: 3_000, 100: 3_000},
    "inbound-large": 16,
    "post": 12_000,
    "post-held": 20_000,
    "batch-held": 60_000,
}
# Rows without a Postfix counterpart.
ALONE = ("post", "post-held", "batch-held", "inbound-idle")
# Rows in which Postfix queries DNS.
ASKS_DNS = ("domains", "inbound", "inbound-large")
POST_CONNECTIONS = 50
BATCH = 100


@dataclass
class Context:
    """State of a run."""

    args: Any
    base: Path
    load: Any
    names: Any
    isolated: bool
    round: int
    sink: tuple = ("127.0.0.1", 2600)

    def idle_sessions(self, peer):
        return max(100, IDLE_SESSIONS[peer] // (5 if self.args.quick and peer == "postfix" else 1))

    def messages(self, count):
        return max(200, int(count * self.args.scale))


def run(context, peer_name, work):
    """Measures one work on one peer. Returns (rows, failures)."""
    if work in egress.WORKS:
        return egress.run(context, work) if peer_name == "postrider" else ([], [])
    if work in ASKS_DNS and not context.isolated and peer_name == "postfix":
        return [], [f"postfix {work}: needs ports 53 and 25, and thus namespaces"]
    if work == "domains":
        context.sink = ("127.0.0.1", 25 if context.isolated else 2600)
    if work in ALONE and peer_name != "postrider":
        return [], []
    found, failures = [], []
    peer = PEERS[peer_name](context, work)
    try:
        peer.start()
        for row in WORKS[work](context, peer):
            found.append({"peer": peer_name, "work": work, "round": context.round, **row})
    except (Failure, OSError) as failure:
        failures.append(f"{peer_name} {work}, round {context.round + 1}: {failure}")
    finally:
        peer.stop()
    return found, failures


def accept(context, peer):
    """Messages are acknowledged and stored; nothing is delivered."""
    context.load.source(peer.relay, 1, WARM_UP)
    for sessions in context.args.sessions:
        count = context.messages(MESSAGES["accept"][sessions])
        yield measure_resources(peer, sessions, count, lambda: context.load.source(peer.relay, sessions, count))


def relay(context, peer):
    """From the first connection to the arrival of the last message at the sink."""
    with_sink = Sink(context.base, "{}:{}".format(*context.sink))
    try:
        context.load.source(peer.relay, 1, WARM_UP)
        with_sink.wait(WARM_UP)
        for sessions in context.args.sessions:
            count = context.messages(MESSAGES[peer.work][sessions])

            def send():
                before = with_sink.received()
                context.load.source(peer.relay, sessions, count)
                with_sink.wait(before + count)
                return {}

            yield measure_resources(peer, sessions, count, send)
    finally:
        with_sink.stop()


def dkim(context, peer):
    """Relay with DKIM; first checks that one message has the expected number of signatures."""
    capture = context.base / f"capture-{peer.name}-{context.round}"
    capture.mkdir()
    capture.chmod(0o777)
    sink = Sink(context.base, "{}:{}".format(*context.sink), capture)
    try:
        context.load.source(peer.relay, 1, 1)
        sink.wait(1)
    finally:
        sink.stop()
    text = b"".join(path.read_bytes() for path in capture.iterdir())
    signatures = text.count(b"\nDKIM-Signature:")
    if signatures != SIGNATURES[peer.name]:
        raise Failure(f"{signatures} DKIM signatures where {SIGNATURES[peer.name]} should be")
    yield from relay(context, peer)


def submission(context, peer):
    """One message per connection with STARTTLS, a full handshake and AUTH; delivered to the sink."""
    count = context.messages(MESSAGES["submission"])
    yield from run_to_sink(context, peer, context.sink, SUBMISSION_SESSIONS, count, peer.submission, login=peer.login)


def domains(context, peer):
    """One message to each of many domains, each with its own MX and address."""
    count = MESSAGES["domains"]
    everywhere = ("0.0.0.0", context.sink[1])
    yield from run_to_sink(context, peer, everywhere, DOMAIN_SESSIONS, count, peer.relay)


def run_to_sink(context, peer, address, sessions, count, to, **options):
    sink = Sink(context.base, "{}:{}".format(*address))
    rcpt = "someone@d{n}-r" + str(context.round) + ".bench.test"
    try:
        context.load.send(to, 4, WARM_UP, rcpt.replace("{n}", "warm{n}"), **options)
        sink.wait(WARM_UP)

        def send():
            result = context.load.send(to, sessions, count, rcpt, **options)
            sink.wait(WARM_UP + count)
            return {"p50_ms": result["p50_ms"], "p99_ms": result["p99_ms"]}

        yield measure_resources(peer, sessions, count, send)
    finally:
        sink.stop()


def inbound(context, peer):
    """Signed inbound mail: authenticated (SPF and DKIM; postrider also DMARC, ARC and iprev) and stored."""
    rcpt = "someone{n}@bench.test"
    context.load.send_signed(peer.mx, 1, 1, rcpt)
    judged = peer.judged()
    if not all(judged.values()):
        raise Failure(f"a valid message failed authentication: {judged}")
    for sessions in context.args.sessions:
        count = context.messages(MESSAGES["inbound"][sessions])
        # Warm up: start the processes of each session (an interpreter takes a while) and fill the DNS caches.
        context.load.send_signed(peer.mx, sessions, max(JUDGED_SENDERS, 2 * sessions), rcpt)

        def send():
            return subtract_signing(context.load.send_signed(peer.mx, sessions, count, rcpt))

        yield measure_resources(peer, sessions, count, send)


def inbound_large(context, peer):
    """Inbound messages of 25 MB, one after the other: measures the memory for one message."""
    count = max(5, int(MESSAGES["inbound-large"] * context.args.scale))
    rcpt = "someone{n}@bench.test"
    context.load.send_signed(peer.mx, 1, WARM_UP, rcpt)
    before = peer.peak_bytes()

    def send():
        result = context.load.send_signed(peer.mx, 1, count, rcpt, LARGE_BYTES, LARGE_SENDERS)
        return subtract_signing(result) | {"grown_bytes": peer.peak_bytes() - before}

    yield measure_resources(peer, 1, count, send)


def subtract_signing(result):
    """Excludes the time that the load spends signing before it sends."""
    figures = {key: result[key] for key in ("seconds", "p50_ms", "p99_ms")}
    return figures | {"per_second": result["messages"] / result["seconds"]}


def post(context, peer):
    """`POST /emails`, signed twice and delivered to the sink concurrently."""
    sink = Sink(context.base, "{}:{}".format(*context.sink))
    count = context.messages(MESSAGES["post"])
    try:
        context.load.post(peer.api, peer.key, 4, WARM_UP, 1)
        sink.wait(WARM_UP)

        def send():
            result = context.load.post(peer.api, peer.key, POST_CONNECTIONS, count, 1)
            accepted_s = result["seconds"]
            sink.wait(WARM_UP + count)
            return {"p50_ms": result["p50_ms"], "p99_ms": result["p99_ms"], "accepted_per_second": count / accepted_s}

        yield measure_resources(peer, POST_CONNECTIONS, count, send)
    finally:
        sink.stop()


def post_held(context, peer):
    """`POST /emails`, or `POST /emails/batch` in batches: acknowledged and stored."""
    batch = BATCH if peer.work == "batch-held" else 1
    count = context.messages(MESSAGES[peer.work]) // batch * batch
    context.load.post(peer.api, peer.key, 4, WARM_UP, 1)

    def send():
        result = context.load.post(peer.api, peer.key, POST_CONNECTIONS, count, batch)
        return {"p50_ms": result["p50_ms"], "p99_ms": result["p99_ms"]}

    yield measure_resources(peer, POST_CONNECTIONS, count, send)


def idle(context, peer):
    """Cost of idle sessions after EHLO."""
    count = context.idle_sessions(peer.name)
    sessions = IdleSessions(peer.mx if peer.work == "inbound-idle" else peer.relay)
    # The first sessions use memory that is free since the start: they are not counted.
    first = count // 5
    sessions.add(first)
    time.sleep(SETTLE_S)
    before, kernel_before = peer.memory_bytes(), machine.kernel_bytes()
    sessions.add(count - first)
    time.sleep(SETTLE_S)
    total = peer.memory_bytes()
    kernel = machine.kernel_bytes() - kernel_before
    sessions.close()
    yield {
        "sessions": count,
        "bytes_per_session": (total - before) / (count - first),
        "kernel_bytes_per_session": kernel / (count - first),
        "memory_bytes": total,
    }


def measure_resources(peer, sessions, count, send):
    """Runs `send`. Returns its rate and its cost for the peer."""
    cpu_before = machine.cpu_s(peer.roots)
    started = time.monotonic()
    extra = send()
    seconds = time.monotonic() - started
    # Clean-up after the last message counts towards the cost but not the rate.
    time.sleep(SETTLE_S)
    cpu = machine.cpu_s(peer.roots) - cpu_before
    return {
        "sessions": sessions,
        "messages": count,
        "seconds": seconds,
        "per_second": count / seconds,
        "cpu_s_per_1000": cpu * 1000 / count,
        "memory_bytes": peer.peak_bytes(),
        **extra,
    }


WORKS = {
    "accept": accept,
    "relay": relay,
    "dkim": dkim,
    "submission": submission,
    "domains": domains,
    "inbound": inbound,
    "inbound-large": inbound_large,
    "inbound-idle": idle,
    "post": post,
    "post-held": post_held,
    "batch-held": post_held,
    "idle": idle,
}
