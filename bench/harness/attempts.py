"""Time from acceptance to the first attempt, from the logs of the load and of the sink."""

import json
import os
import socket
import subprocess
import time
from pathlib import Path
from statistics import quantiles as cut

from machine import Failure
from traffic import MESSAGE_BYTES, RUN_S_MAX, SENDER

# If no message arrives for this long, the run has failed.
STALL_S = 60
# Slower than any machine: limits the duration of a run.
SLOWEST_PER_SECOND = 100
LOOK_S = 0.02
FOREVER = 10_000_000
MEMORY = Path("/dev/shm")


class CountingSink:
    """`load sink`: all mail hosts in one process, controlled over its stdin and stdout."""

    def __init__(self, load, address, addresses):
        self.log = memory_file("sink")
        command = [load.binary, "sink", "--listen", "{}:{}".format(*address), "--addresses", str(addresses)]
        self.process = subprocess.Popen(
            [*command, "--log", self.log], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.expected = 0
        self.read_to = 0
        self.tried = {}
        self.answer()

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise Failure(f"the sink ended with {self.process.wait()}")
        return json.loads(line)

    def send_command(self, text):
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()
        return self.answer()

    def count(self):
        return self.send_command("")

    def drip(self, every):
        """Every Nth host sends one byte at a time from now on; 0: none."""
        self.send_command(f"drip {every}")

    def wait(self, count):
        """Waits until the sink has received `count` messages. Fails if none arrives for a while."""
        last, since = -1, time.monotonic()
        while (messages := self.count()["messages"]) < count:
            if messages != last:
                last, since = messages, time.monotonic()
            elif time.monotonic() - since > STALL_S:
                raise Failure(f"the sink received {messages} of {count} messages, and none in the last {STALL_S} s")
            time.sleep(LOOK_S)

    def quieten(self):
        """Waits until no message has arrived for a second."""
        last = -1
        while (messages := self.count()["messages"]) != last:
            last = messages
            time.sleep(1)

    def first_tried(self):
        """Recipients with the time of their first attempt, in microseconds."""
        self.count()
        with self.log.open("rb") as file:
            file.seek(self.read_to)
            for line in file:
                rcpt, at = line.decode().rsplit(" ", 1)
                self.tried.setdefault(rcpt, int(at))
            self.read_to = file.send_command()
        return self.tried

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.log.unlink(missing_ok=True)


class Sent:
    """Accepted messages with their times."""

    def __init__(self, started_at, log):
        self.started_at = started_at
        self.seconds = time.monotonic() - started_at
        self.accepted = [line.split() for line in log.read_text().splitlines()]
        log.unlink()

    def waits(self, sink, counts=lambda _: True):
        """Time from acceptance to the first attempt, in milliseconds. Fails if a message was not tried."""
        tried = sink.first_tried()
        counted = [(rcpt, int(at)) for rcpt, at, _ in self.accepted if counts(rcpt)]
        missing = [rcpt for rcpt, _ in counted if rcpt not in tried]
        if missing:
            raise Failure(f"{len(missing)} of {len(counted)} messages were not tried, for example to {missing[0]}")
        # The next host may see the RCPT before the sender has read its reply: then the difference is negative.
        waits = [max(0, tried[rcpt] - at) / 1000 for rcpt, at in counted]
        took = [int(took) / 1000 for rcpt, _, took in self.accepted if counts(rcpt)]
        return {"samples": len(waits), **quantiles("wait", waits), **quantiles("accepted", took)}


def burst(load, to, sessions, count, rcpt, domains=None, per_second=None):
    """Sends all messages, as fast as the server accepts them or at a rate."""
    log = memory_file("sent")
    started_at = time.monotonic()
    command = send_command(load, to, sessions, count, rcpt, log)
    command += ["--domains", str(domains)] if domains else []
    command += ["--per-second", str(per_second)] if per_second else []
    load.run(command, RUN_S_MAX + count / (per_second or SLOWEST_PER_SECOND))
    return Sent(started_at, log)


def drained(sink, count, sent):
    """Waits for `count` more messages. Returns the seconds from the first connection to the last arrival."""
    sink.expected += count
    sink.wait(sink.expected)
    return time.monotonic() - sent.started_at


def send_command(load, to, sessions, count, rcpt, log, sender=SENDER):
    command = [load.binary, "send", "--to", "{}:{}".format(*to), "--sessions", str(sessions)]
    command += ["--messages", str(count), "--size-bytes", str(MESSAGE_BYTES), "--from", sender]
    return [*command, "--rcpt", rcpt, "--log", log]


class Trickle:
    """Sends messages of another account at a low rate until it is stopped."""

    SESSIONS = 4

    def __init__(self, load, peer, name, host, per_second):
        self.log = memory_file(f"trickle-{host}")
        self.started_at = time.monotonic()
        rcpt = name + "{n}@" + host + ".hosts.bench.test"
        command = send_command(load, peer.other_relay, self.SESSIONS, FOREVER, rcpt, self.log, peer.other_sender)
        self.process = subprocess.Popen([*command, "--per-second", str(per_second)], stderr=subprocess.PIPE, text=True)

    def stop(self):
        """Stops sending. Returns the accepted messages."""
        early = self.process.poll()
        self.process.terminate()
        _, errors = self.process.communicate()
        if early is not None:
            raise Failure(f"the background load ended early: {errors.strip()[-500:]}")
        return Sent(self.started_at, self.log)


class Silence:
    """A host that does not answer: its listen queue is full, so the kernel drops new connections."""

    CALLERS = 8

    def __init__(self, address):
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind(address)
        self.listener.listen(0)
        self.callers = []
        for _ in range(self.CALLERS):
            caller = socket.socket()
            caller.setblocking(False)
            caller.connect_ex(address)
            self.callers.append(caller)

    def close(self):
        for one in [*self.callers, self.listener]:
            one.close()


def quantiles(name, values):
    """Median, 99th percentile and maximum."""
    if len(values) < 2:
        raise Failure("too few messages for quantiles")
    percents = cut(values, n=100, method="inclusive")
    return {f"{name}_p50_ms": percents[49], f"{name}_p99_ms": percents[98], f"{name}_max_ms": max(values)}


def memory_file(name):
    """A file in memory, so that writing the log does not use the measured disk."""
    return MEMORY / f"postrider-bench-{name}-{os.getpid()}"


def clean_up():
    """Stops what a failed measurement left running."""
    for left in MEMORY.glob(f"postrider-bench-*-{os.getpid()}"):
        left.unlink()
