#!/usr/bin/env python3
"""A million waiting automation runs: how fast the server starts, how much memory it uses, and how fast a thousand runs
continue that are due in the same second.

    POSTRIDER=target/release/postrider tests/drills/waiting.py                  1,000,000 runs, takes long
    POSTRIDER=target/release/postrider tests/drills/waiting.py --runs 100000    a shorter run

Flow: start a server with a movable clock; let a thousand runs wait for an hour and all others, fifty started by each
event, for a month; kill the server (-9) and start it; measure the time until it responds and its memory; advance the
clock by an hour and measure the time until the thousand runs are done. Exits with 1 if a run is lost.
"""

import argparse
import http.client
import json
import os
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.dont_write_bytecode = True
from events import DOMAIN, OWNER, PATIENCE_S, Server, call  # noqa: E402
from nodes import Sink, until  # noqa: E402

DUE = 1_000
# Automations that one event starts (the maximum).
EACH = 50
PROCESSES = 2
CLIENTS = 8


def resident_mib(process):
    status = Path(f"/proc/{process.pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS")) / 1024


def post(port, key, name, numbers):
    """Posts an event for each number, on one connection."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
    for number in numbers:
        body = json.dumps({"name": name, "user_id": f"user_{number}", "data": {"number": number}})
        connection.request("POST", "/events", body, headers)
        answer = connection.getresponse()
        text = answer.read()
        if answer.status != 202:
            raise SystemExit(f"event {number} was answered {answer.status}: {text[:300]}")


def post_all(port, key, name, count, log_progress):
    """Posts the events from several processes, each with several connections."""
    children = []
    for part in range(PROCESSES):
        child = os.fork()
        if child == 0:
            shares = [range(part * CLIENTS + own, count, PROCESSES * CLIENTS) for own in range(CLIENTS)]
            threads = [threading.Thread(target=post, args=(port, key, name, share)) for share in shares]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            os._exit(0)
        children.append(child)
    while children:
        child, status = os.waitpid(-1, os.WNOHANG)
        if child:
            children.remove(child)
            if status:
                raise SystemExit("the load failed")
        else:
            time.sleep(5)
            log_progress("posting")


class MovedServer(Server):
    """A postrider with a movable clock."""

    def __init__(self, base, sink):
        super().__init__(base, sink)
        with self.config.open("a") as config:
            config.write('[testing]\nclock_offset = "0s"\n')


def automation(name, duration):
    steps = [{"type": "delay", "duration": duration}]
    steps += [{"type": "condition", "all": [{"field": "event.data.number", "op": "gte", "value": 0}]}] * 2
    return {"name": name, "trigger": {"event": name}, "steps": steps}


def drill(args, base):
    server = MovedServer(base, Sink())
    server.start()
    key = server.admin("account", "create", "--email", OWNER, "--plan", "dedicated", "--production")["api_key"]["secret"]

    def call_api(method, path, body=None):
        status, answer = call(server.port, key, method, path, body)
        if status != 200:
            raise SystemExit(f"{method} {path} was answered {status}: {answer}")
        return answer

    def counts(identity):
        return call_api("GET", f"/automations/{identity}")["automation"]["counts"]

    def activate(name, duration):
        made = call_api("POST", "/automations", automation(name, duration))["automation"]["id"]
        call_api("POST", f"/automations/{made}", {"action": "activate"})
        return made

    soon, late = activate("soon", "1h"), [activate("late", "30d") for _ in range(EACH)]

    def waiting():
        return sum(counts(made)["waiting"] for made in late)

    empty = resident_mib(server.process)
    began = time.monotonic()

    def log_progress(text):
        memory = resident_mib(server.process)
        print(f"{time.monotonic() - began:6.1f} s  waiting {waiting():8}  {memory:6.0f} MiB  {text}", flush=True)

    post_all(server.port, key, "soon", DUE, log_progress)
    post_all(server.port, key, "late", args.runs // EACH, log_progress)
    until(lambda: waiting() == args.runs, "waiting runs", PATIENCE_S)
    log_progress("all wait")
    server.kill()
    start = time.monotonic()
    server.start()
    started = time.monotonic() - start
    memory = resident_mib(server.process)
    log_progress("the server responds again")
    # The command returns after all due work was tried.
    start = time.monotonic()
    server.admin("clock", "advance", "3600")
    until(lambda: counts(soon)["completed"] == DUE, "the due runs", PATIENCE_S)
    done = time.monotonic() - start
    log_progress("the due runs are done")
    print(f"start with {args.runs} waiting runs: {started:.2f} s, {memory:.0f} MiB resident ({empty:.0f} when empty)")
    print(f"{DUE} runs due at once: done in {done:.2f} s; {resident_mib(server.process):.0f} MiB resident")
    lost = args.runs - waiting()
    server.process.send_signal(signal.SIGTERM)
    server.process.wait()
    return [f"{lost} waiting runs are lost"] if lost else []


def main():
    parser = argparse.ArgumentParser(description="Automation runs that wait.")
    parser.add_argument("--runs", type=int, default=1_000_000)
    args = parser.parse_args()
    base = Path(tempfile.mkdtemp(prefix="waiting-", dir=os.environ.get("TMPDIR", "/var/tmp")))
    if found := drill(args, base):
        raise SystemExit("\n".join(found) + f"\nsee {base}")


if __name__ == "__main__":
    main()
