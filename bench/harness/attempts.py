"""When mail was accepted and when it was first tried: the load's log against the sink's."""

import json
import os
import socket
import subprocess
import time
from pathlib import Path
from statistics import quantiles as cut

from machine import Failure
from traffic import MESSAGE_BYTES, RUN_S_MAX, SENDER

# Nothing comes for so long: then nothing will.
STALL_S = 60
# Messages a second that any machine manages: bounds how long a run may take.
SLOWEST_PER_SECOND = 100
LOOK_S = 0.02
FOREVER = 10_000_000
MEMORY = Path("/dev/shm")


class CountingSink:
    """`load sink`: all mail hosts in one process, told and asked over its stdin and stdout."""

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

    def tell(self, text):
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()
        return self.answer()

    def count(self):
        return self.tell("")

    def drip(self, every):
        """Every so-manieth host answers a byte at a time from now on; 0: none."""
        self.tell(f"drip {every}")

    def wait(self, count):
        """Until it has so many messages, as long as they come."""
        last, since = -1, time.monotonic()
        while (messages := self.count()["messages"]) < count:
            if messages != last:
                last, since = messages, time.monotonic()
            elif time.monotonic() - since > STALL_S:
                raise Failure(f"the sink got {messages} of {count} messages, and none in {STALL_S} s")
            time.sleep(LOOK_S)

    def quieten(self):
        """Until nothing came for a second."""
        last = -1
        while (messages := self.count()["messages"]) != last:
            last = messages
            time.sleep(1)

    def first_tried(self):
        """Recipients and when each was first tried, in microseconds."""
        self.count()
        with self.log.open("rb") as file:
            file.seek(self.read_to)
            for line in file:
                rcpt, at = line.decode().rsplit(" ", 1)
                self.tried.setdefault(rcpt, int(at))
            self.read_to = file.tell()
        return self.tried

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.log.unlink(missing_ok=True)


class Sent:
    """Messages that were accepted, and when."""

    def __init__(self, began, log):
        self.began = began
        self.seconds = time.monotonic() - began
        self.accepted = [line.split() for line in log.read_text().splitlines()]
        log.unlink()

    def waits(self, sink, counts=lambda _: True):
        """How long messages waited for their first attempt, in milliseconds: all of them must have been tried."""
        tried = sink.first_tried()
        counted = [(rcpt, int(at)) for rcpt, at, _ in self.accepted if counts(rcpt)]
        missing = [rcpt for rcpt, _ in counted if rcpt not in tried]
        if missing:
            raise Failure(f"{len(missing)} of {len(counted)} messages were not tried, to {missing[0]} for one")
        # The reply may still be on its way when the next host hears already.
        waits = [max(0, tried[rcpt] - at) / 1000 for rcpt, at in counted]
        took = [int(took) / 1000 for rcpt, _, took in self.accepted if counts(rcpt)]
        return {"samples": len(waits), **quantiles("wait", waits), **quantiles("accepted", took)}


def burst(load, to, sessions, count, rcpt, domains=None, per_second=None):
    """Sends it all, as fast as it is taken unless a rate is said."""
    log = memory_file("sent")
    began = time.monotonic()
    command = send_command(load, to, sessions, count, rcpt, log)
    command += ["--domains", str(domains)] if domains else []
    command += ["--per-second", str(per_second)] if per_second else []
    load.run(command, RUN_S_MAX + count / (per_second or SLOWEST_PER_SECOND))
    return Sent(began, log)


def drained(sink, count, sent):
    """Waits for so many more messages; the seconds from the first one's connection to the last one's arrival."""
    sink.expected += count
    sink.wait(sink.expected)
    return time.monotonic() - sent.began


def send_command(load, to, sessions, count, rcpt, log, sender=SENDER):
    command = [load.binary, "send", "--to", "{}:{}".format(*to), "--sessions", str(sessions)]
    command += ["--messages", str(count), "--size-bytes", str(MESSAGE_BYTES), "--from", sender]
    return [*command, "--rcpt", rcpt, "--log", log]


class Trickle:
    """A message now and then, from the other account, until it is stopped."""

    SESSIONS = 4

    def __init__(self, load, peer, name, host, per_second):
        self.log = memory_file(f"trickle-{host}")
        self.began = time.monotonic()
        rcpt = name + "{n}@" + host + ".hosts.bench.test"
        command = send_command(load, peer.other_relay, self.SESSIONS, FOREVER, rcpt, self.log, peer.other_sender)
        self.process = subprocess.Popen([*command, "--per-second", str(per_second)], stderr=subprocess.PIPE, text=True)

    def stop(self):
        """What was sent."""
        early = self.process.poll()
        self.process.terminate()
        _, errors = self.process.communicate()
        if early is not None:
            raise Failure(f"the trickle ended early: {errors.strip()[-500:]}")
        return Sent(self.began, self.log)


class Silence:
    """A host that does not answer: the kernel drops what wants to connect, since the queue of those is full."""

    CALLERS = 8

    def __init__(self, address):
        self.door = socket.socket()
        self.door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.door.bind(address)
        self.door.listen(0)
        self.callers = []
        for _ in range(self.CALLERS):
            caller = socket.socket()
            caller.setblocking(False)
            caller.connect_ex(address)
            self.callers.append(caller)

    def close(self):
        for one in [*self.callers, self.door]:
            one.close()


def quantiles(name, values):
    """p50, p99 and the greatest."""
    if len(values) < 2:
        raise Failure("too few messages for quantiles")
    percents = cut(values, n=100, method="inclusive")
    return {f"{name}_p50_ms": percents[49], f"{name}_p99_ms": percents[98], f"{name}_max_ms": max(values)}


def memory_file(name):
    """In memory: what is written down is not to wait for the disk that is measured."""
    return MEMORY / f"postrider-bench-{name}-{os.getpid()}"


def clean_up():
    """Takes away what a measurement that failed has left."""
    for left in MEMORY.glob(f"postrider-bench-*-{os.getpid()}"):
        left.unlink()
