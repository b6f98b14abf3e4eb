#!/usr/bin/env python3
"""`listen` of the command line while the server restarts: nothing is lost, and events are shown at once.

    tests/drills/listen.py --postrider target/release/postrider --cli target/release/postrider-cli --limit 100
    tests/drills/listen.py --postrider target/debug/postrider --cli target/debug/postrider-cli --events 200

Flow: start a server, a mail sink and `listen`; send emails one by one, each of which is one `email.sent` event; at equal
distances restart the server, alternately with SIGTERM and SIGKILL; wait until every event was shown. The delay of an
event is the time between its `created_at`, which its commit has, and its line on standard output. Events that were
committed while `listen` had no connection are counted apart: from the signal until the first line afterwards.

Exits with 1 if an event is missing, shown twice or out of order, or if the delay of one event of a hundred is longer
than `--limit`.
"""

import argparse
import datetime
import http.client
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.dont_write_bytecode = True
from nodes import Sink, free_port, until  # noqa: E402

OWNER, DOMAIN = "owner@acme.example", "acme.example"
PATIENCE_S = 120


class RestartedServer:
    """A server on one port and one directory."""

    def __init__(self, binary, directory, sink):
        self.binary, self.port = binary, free_port()
        self.config, self.log = directory / "postrider.toml", directory / "log"
        self.config.write_text(f"""
hostname = "mx.postrider.example"
data_dir = "{directory}/data"
[api]
listen = "127.0.0.1:{self.port}"
rate_limit = "off"
[delivery]
smarthost = "127.0.0.1:{sink.port}"
""")
        self.process = None

    def start(self):
        log = self.log.open("ab")
        self.process = subprocess.Popen([self.binary, "serve", "--config", self.config], stdout=log, stderr=log)
        until(self.is_ready, f"the server ({self.log})")

    def is_ready(self):
        if self.process.poll() is not None:
            raise SystemExit(f"the server exited: {self.log.read_text()[-2000:]}")
        try:
            return self.request("GET", "/healthz", None, None)[0] == 200
        except (OSError, http.client.HTTPException):
            return False

    def request(self, method, path, key, body, idempotency_key=""):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            headers = {"authorization": f"Bearer {key}", "content-type": "application/json"} if key else {}
            if idempotency_key:
                headers["idempotency-key"] = idempotency_key
            connection.request(method, path, json.dumps(body) if body is not None else None, headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def admin(self, *words):
        command = [self.binary, "admin", "--config", self.config, *words, "--json"]
        return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout or "null")

    def make_key(self):
        made = self.admin("account", "create", "--email", OWNER, "--plan", "dedicated", "--production")
        self.admin("domain", "create", DOMAIN, "--account", OWNER, "--verified")
        return made["api_key"]["secret"]

    def stop(self, how):
        self.process.send_signal(how)
        self.process.wait(60)


class Listener:
    """A running `listen`, and when it showed each event."""

    def __init__(self, cli, server, key, directory):
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(directory),
            "POSTRIDER_BASE_URL": f"http://127.0.0.1:{server.port}",
            "POSTRIDER_API_KEY": key,
        }
        self.process = subprocess.Popen(
            [cli, "listen", "--json", "--types", "email.sent"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
        )
        self.shown = []
        # The first line says that it listens.
        if not self.process.stderr.readline():
            raise SystemExit("listen does not start")
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            self.shown.append((time.time(), json.loads(line)))

    def of_drill(self):
        """What was shown after the first events."""
        return [(seen, event) for seen, event in list(self.shown) if number_of(event) >= 0]


def send(server, key, number):
    """Sends an email, again if the server went away before it answered."""
    email = {
        "from": f"shop@{DOMAIN}",
        "to": f"user{number}@example.net",
        "subject": f"number {number}",
        "text": "Hello",
    }
    while True:
        try:
            status, answer = server.request("POST", "/emails", key, email, f"number-{number}")
        except (OSError, http.client.HTTPException):
            time.sleep(0.01)
            continue
        if status == 200:
            return
        if status not in (409, 500, 502, 503):
            raise SystemExit(f"{status}: {answer[:500]}")


def number_of(event):
    return int(event["data"]["subject"].removeprefix("number "))


def created_at(event):
    return datetime.datetime.fromisoformat(event["created_at"].replace("Z", "+00:00")).timestamp()


def drill(args, directory):
    server = RestartedServer(str(Path(args.postrider).resolve()), directory, Sink())
    server.start()
    key = server.make_key()
    listener = Listener(str(Path(args.cli).resolve()), server, key, directory)
    outages = []
    # An event that is shown proves that the stream is open.
    for number in range(1, 100):
        send(server, key, -number)
        time.sleep(0.1)
        if listener.shown:
            break

    def restart(how):
        outages.append(time.time())
        server.stop(how)
        server.start()

    at = {args.events * (number + 1) // (args.restarts + 1): number for number in range(args.restarts)}
    restarting = None
    for number in range(args.events):
        if number in at:
            how = signal.SIGKILL if at[number] % 2 else signal.SIGTERM
            restarting = threading.Thread(target=restart, args=(how,))
            restarting.start()
        send(server, key, number)
        time.sleep(args.pause)
    if restarting:
        restarting.join()
    shown = lambda: {number_of(event) for _, event in listener.of_drill()}  # noqa: E731
    end = time.monotonic() + PATIENCE_S
    while len(shown()) < args.events and time.monotonic() < end and listener.process.poll() is None:
        time.sleep(0.05)
    listener.process.send_signal(signal.SIGINT)
    listener.process.wait(10)
    server.stop(signal.SIGTERM)
    return report(args, listener.of_drill(), outages)


def report(args, shown, outages):
    """Prints the figures. Returns what is wrong."""
    lines = [number_of(event) for _, event in shown]
    missing, twice = set(range(args.events)) - set(lines), len(lines) - len(set(lines))
    problems = []
    if missing:
        problems.append(f"{len(missing)} events were not shown: {sorted(missing)[:5]}")
    if twice:
        problems.append(f"{twice} events were shown twice")
    if lines != sorted(lines):
        problems.append("events were shown out of order")
    delays, in_outage = [], []
    for seen, event in shown:
        commit = created_at(event)
        begun = max((outage for outage in outages if outage <= seen), default=None)
        # The first line after an outage ends it; what was committed before that waited for the connection.
        first = min((at for at, _ in shown if begun is not None and at > begun), default=None)
        waited = begun is not None and first is not None and commit <= first and seen > begun
        (in_outage if waited else delays).append((seen - commit) * 1000)
    if not delays:
        return [*problems, "no event was shown while connected"]
    delays.sort()
    p99 = delays[int(len(delays) * 0.99) - 1]
    print(
        f"{len(lines)} events shown, {len(missing)} lost, {twice} twice, {len(outages)} restarts; delay of {len(delays)} events "
        f"while connected: median {statistics.median(delays):.1f} ms, p99 {p99:.1f} ms, longest {delays[-1]:.1f} ms"
    )
    if in_outage:
        print(f"{len(in_outage)} events around restarts: longest {max(in_outage):.0f} ms")
    if args.limit and p99 > args.limit:
        problems.append(f"one event of a hundred took longer than {args.limit} ms")
    return problems


def main():
    parser = argparse.ArgumentParser(description="`listen` while the server restarts.")
    parser.add_argument("--postrider", required=True, help="the server")
    parser.add_argument("--cli", required=True, help="the command line")
    parser.add_argument("--events", type=int, default=1_000)
    parser.add_argument("--restarts", type=int, default=3)
    parser.add_argument("--pause", type=float, default=0.01, help="seconds between two events")
    parser.add_argument("--limit", type=float, help="fail if one event of a hundred takes longer, in ms")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="listen-") as name:
        problems = drill(args, Path(name))
    for problem in problems:
        print(f"!! {problem}")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
