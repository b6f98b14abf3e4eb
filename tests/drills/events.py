#!/usr/bin/env python3
"""Product events that start automations of three steps, while the server is killed (-9) repeatedly.

    POSTRIDER=target/release/postrider tests/drills/events.py               10,000 events
    POSTRIDER=target/debug/postrider tests/drills/events.py --events 400    a short run
    tests/drills/events.py --postgres 3                                     three nodes on one PostgreSQL

Flow: start a server (or nodes on a private PostgreSQL), a mail sink and a webhook receiver; create an automation
(condition, delay, send_email) and a webhook for all events; post events with idempotency keys, each until it gets a
response; meanwhile kill and restart the server (or one of the nodes); wait until no run is active and no webhook
delivery is pending; then compare the responses, the runs, the emails, the event stream, the received webhooks and the
received mail. Exits with 1 and the differences if an event is lost or counted twice, a run is not completed, a step is
executed twice, or a webhook is never received.
"""

import argparse
import collections
import hashlib
import hmac
import http.client
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

sys.dont_write_bytecode = True
from nodes import Postgres, Sink, free_port, until  # noqa: E402

OWNER, DOMAIN = "owner@acme.example", "acme.example"
CLIENTS = 8
PATIENCE_S = 600
# Events of each type that follow from one posted event: one run of three steps, one of which sends one email.
WANTED = {
    "automation.started": 1,
    "automation.step_completed": 3,
    "automation.completed": 1,
    "email.sent": 1,
    "email.delivered": 1,
}


class Server:
    """A postrider that is killed repeatedly."""

    def __init__(self, directory, sink, store="", beside=None):
        directory.mkdir(exist_ok=True)
        self.port = free_port()
        self.config = directory / "postrider.toml"
        self.log = directory / "log"
        self.data = directory / "data"
        if beside:
            # The nodes of a cluster share their secret key.
            self.data.mkdir()
            shutil.copy(beside.data / "secret.key", self.data / "secret.key")
        self.config.write_text(f"""
hostname = "mx.postrider.example"
data_dir = "{self.data}"
[store]
{store}
[api]
listen = "127.0.0.1:{self.port}"
rate_limit = "off"
[delivery]
smarthost = "127.0.0.1:{sink.port}"
retry = ["1s"]
[webhooks]
allow_http = true
allow_private_destinations = true
# Short, so that a webhook that is missing for long is not one that waits for its next attempt.
retry = ["0s", "1s", "1s", "2s", "2s", "5s", "5s", "5s", "5s", "5s", "10s", "10s", "10s", "10s", "10s"]
""")
        self.process = None

    def start(self):
        log = self.log.open("ab")
        self.process = subprocess.Popen([os.environ["POSTRIDER"], "serve", "--config", self.config], stdout=log, stderr=log)
        until(self.is_ready, f"the server ({self.log})")

    def is_ready(self):
        if self.process.poll() is not None:
            raise SystemExit(f"the server exited: {self.log.read_text()[-2000:]}")
        try:
            return call(self.port, None, "GET", "/healthz")[0] == 200
        except (OSError, http.client.HTTPException):
            return False

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def admin(self, *words):
        command = [os.environ["POSTRIDER"], "admin", "--config", self.config, *words, "--json"]
        return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout or "null")


def call(port, key, method, path, body=None, **headers):
    """One request on its own connection. Returns the status and the JSON body."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        if key:
            headers["authorization"] = f"Bearer {key}"
        if body is not None:
            headers["content-type"], body = "application/json", json.dumps(body)
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        text = answer.read()
        return answer.status, json.loads(text) if text.startswith(b"{") else text
    finally:
        connection.close()


class Receiver:
    """Receives webhooks, checks their signatures, and refuses some, as real receivers do."""

    def __init__(self):
        self.got = collections.defaultdict(collections.Counter)
        self.secret, self.forged, self.lock = None, 0, threading.Lock()
        self.chance = random.Random(1)
        receiver = self

        class WebhookHandler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                self.send_response(receiver.receive_webhook(self.headers, body))
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        class WebhookServer(ThreadingHTTPServer):
            request_queue_size = 512
            daemon_threads = True

            def handle_error(self, *_):
                pass  # the server was killed in the middle of a request

        server_socket = WebhookServer(("127.0.0.1", 0), WebhookHandler)
        self.url = f"http://127.0.0.1:{server_socket.server_address[1]}/hook"
        threading.Thread(target=server_socket.serve_forever, daemon=True).start()

    def receive_webhook(self, headers, body):
        t, v1 = (part.split("=", 1)[1] for part in headers["service-signature"].split(","))
        right = hmac.new(self.secret.encode(), f"{t}.".encode() + body, hashlib.sha256).hexdigest()
        event = json.loads(body)
        with self.lock:
            if not hmac.compare_digest(right, v1):
                self.forged += 1
                return 400
            if self.chance.random() < 0.02:
                return 503
            self.got[event["type"]][event["data"]["event_id"]] += 1
        return 200


class Load:
    """Posts each event until it gets a response."""

    def __init__(self, servers, key, count):
        self.servers, self.key = servers, key
        self.left = collections.deque(range(count))
        self.answers = {}
        self.threads = [threading.Thread(target=self.run, daemon=True) for _ in range(CLIENTS)]
        for thread in self.threads:
            thread.start()

    def run(self):
        while True:
            try:
                number = self.left.popleft()
            except IndexError:
                return
            self.answers[number] = self.post(number)

    def post(self, number):
        event = {
            "name": "order.paid",
            "user_id": f"user_{number}",
            "email": f"user{number}@shop{number % 40}.example",
            "data": {"number": number, "password": "secret"},
        }
        while True:
            try:
                server = random.choice(self.servers)
                status, answer = call(server.port, self.key, "POST", "/events", event, idempotency_key=f"order-{number}")
            except (OSError, http.client.HTTPException):
                time.sleep(0.05)
                continue
            if status == 202:
                return answer
            if status not in (409, 503, 504):
                raise SystemExit(f"event {number} was answered {status}: {answer}")
            time.sleep(0.1)


def automation():
    return {
        "name": "Receipt",
        "trigger": {"event": "order.paid"},
        "steps": [
            {"type": "condition", "all": [{"field": "event.data.number", "op": "gte", "value": 0}]},
            {"type": "delay", "duration": "1s"},
            {
                "type": "send_email",
                "from": f"shop@{DOMAIN}",
                "subject": "number {{event.data.number}}",
                "text": "Thank you for order {{event.data.number}}.",
            },
        ],
    }


def pages(server, key, path, name):
    """All items of a paged list."""
    cursor = None
    while True:
        status, answer = call(server.port, key, "GET", f"{path}limit=100" + (f"&cursor={cursor}" if cursor else ""))
        if status != 200:
            raise SystemExit(f"GET {path} was answered {status}: {answer}")
        yield from answer[name]
        if not answer["has_more"]:
            return
        cursor = answer["next_cursor"]


def drill(args, base):
    """Runs the drill. Returns the differences and the number of kills."""
    sink, receiver = Sink(), Receiver()
    database, store = None, ""
    if args.postgres:
        database = Postgres(base, "postgres").init().start("fsync=off", "full_page_writes=off")
        database.sql("CREATE DATABASE mail", "postgres")
        store = f'engine = "postgres"\nurl = "postgres://postgres@127.0.0.1:{database.port}/mail"'
    try:
        return run_on_server(args, (base, store), (sink, receiver))
    finally:
        if database:
            database.end()


def run_on_server(args, place, peers):
    (base, store), (sink, receiver) = place, peers
    server = Server(base / "node0", sink, store)
    server.start()
    servers = [server]
    for number in range(1, args.postgres):
        servers.append(Server(base / f"node{number}", sink, store, beside=server))
        servers[-1].start()
    made = server.admin("account", "create", "--email", OWNER, "--plan", "dedicated", "--production")
    key = made["api_key"]["secret"]
    server.admin("domain", "create", DOMAIN, "--account", OWNER, "--verified")

    def call_api(method, path, body=None):
        status, answer = call(server.port, key, method, path, body)
        if status != 200:
            raise SystemExit(f"{method} {path} returned {status}: {answer}")
        return answer

    webhook = call_api("POST", "/webhooks", {"url": receiver.url})
    receiver.secret = webhook["secret"]
    made = call_api("POST", "/automations", automation())["automation"]
    call_api("POST", f"/automations/{made['id']}", {"action": "activate"})
    began = time.monotonic()
    load = Load(servers, key, args.events)
    kills, chance = 0, random.Random(args.seed)

    def log_progress(text):
        print(
            f"{time.monotonic() - began:6.1f} s  answered {len(load.answers):6}  mail {len(sink.got):6}  "
            f"webhooks {sum(map(len, receiver.got.values())):6}  {text}",
            flush=True,
        )

    def kill():
        nonlocal kills
        victim = chance.choice(servers)
        victim.kill()
        kills += 1
        victim.start()
        log_progress(f"killed {kills} times")

    while any(thread.is_alive() for thread in load.threads):
        time.sleep(args.pause * (0.5 + chance.random()))
        kill()
    for _ in range(args.kills_after):
        time.sleep(args.pause * (0.5 + chance.random()))
        kill()

    def counts():
        return call_api("GET", f"/automations/{made['id']}")["automation"]["counts"]

    until(lambda: not (counts()["running"] + counts()["waiting"]), "the runs", PATIENCE_S)
    log_progress("no run is active")
    total = args.events * sum(WANTED.values())
    try:
        until(lambda: sum(map(len, receiver.got.values())) >= total, "the webhooks", PATIENCE_S)
    except SystemExit:
        print_undelivered(server, key, webhook, receiver)
        raise
    log_progress("every webhook was received")
    found = list(differences(args, server, key, (load, receiver, sink, made["id"], counts())))
    for server in servers:
        server.process.send_signal(signal.SIGTERM)
        if server.process.wait() != 0:
            found.append(f"a server did not exit with 0: see {server.log}")
    return found, kills


def print_undelivered(server, key, webhook, receiver):
    """Prints the deliveries that are not done, and the events that have none."""
    webhook_id = webhook.get("id") or webhook["webhook"]["id"]
    delivered_events = set()
    for delivery in pages(server, key, f"/webhooks/{webhook_id}/deliveries?", "deliveries"):
        delivered_events.add(delivery["event_id"])
        if delivery["status"] != "delivered":
            print(f"not delivered: {delivery}")
    for event in pages(server, key, "/webhook-events?order=asc&", "events"):
        if event["type"] in WANTED and event["id"] not in receiver.got[event["type"]]:
            print(f"not received: {event['type']} {event['id']}, has a delivery: {event['id'] in delivered_events}")


def differences(args, server, key, facts):
    load, receiver, sink, automation_id, counts = facts
    numbers = range(args.events)
    ids = {answer["event"]["id"] for answer in load.answers.values()}
    if len(ids) != args.events:
        yield f"{args.events} events have {len(ids)} ids"
    stored = list(pages(server, key, "/events?name=order.paid&", "events"))
    if len(stored) != args.events or {event["id"] for event in stored} != ids:
        yield f"{len(stored)} events are stored, {len(ids)} got a response"
    if failed_items := [n for n, answer in load.answers.items() if answer["matched_automations"] != 1]:
        yield f"{len(failed_items)} events did not match exactly one automation: {failed_items[:5]}"
    if counts["completed"] != args.events or counts["failed"] or counts["cancelled"]:
        yield f"counts: {counts}"
    runs = list(pages(server, key, f"/automations/{automation_id}/runs?", "runs"))
    if len({run["event_id"] for run in runs}) != args.events or len(runs) != args.events:
        yield f"{len(runs)} runs of {len({run['event_id'] for run in runs})} events"
    if failed_items := [run["id"] for run in runs if [s["status"] for s in run["steps"]] != ["completed"] * 3]:
        yield f"{len(failed_items)} runs have steps that are not completed: {failed_items[:5]}"
    emails = collections.Counter(email["subject"] for email in pages(server, key, "/emails?", "emails"))
    if emails != collections.Counter(f"number {n}" for n in numbers):
        yield f"{sum(emails.values())} emails about {len(emails)} numbers"
    if missing := [n for n in numbers if n not in sink.got]:
        yield f"{len(missing)} emails never arrived: {missing[:5]}"
    stream = collections.defaultdict(collections.Counter)
    for event in pages(server, key, "/webhook-events?order=asc&", "events"):
        stream[event["type"]][event["id"]] += 1
    for kind, each in WANTED.items():
        if len(stream[kind]) != each * args.events or max(stream[kind].values(), default=1) > 1:
            yield f"the stream has {sum(stream[kind].values())} {kind} with {len(stream[kind])} ids"
        if set(receiver.got[kind]) != set(stream[kind]):
            yield f"{len(set(stream[kind]) - set(receiver.got[kind]))} {kind} were never received by webhook"
    if receiver.forged:
        yield f"{receiver.forged} webhook signatures were invalid"


def main():
    parser = argparse.ArgumentParser(description="Events, automations and webhooks under kill -9.")
    parser.add_argument("--events", type=int, default=10_000)
    parser.add_argument("--pause", type=float, default=2.0, help="approximate seconds between kills")
    parser.add_argument("--kills-after", type=int, default=3, help="kills after all events are posted")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--postgres", type=int, default=0, metavar="NODES", help="number of nodes on one PostgreSQL")
    args = parser.parse_args()
    base = Path(tempfile.mkdtemp(prefix="events-"))
    base.chmod(0o755)
    found, kills = drill(args, base)
    for difference in found:
        print(f"!! {difference}")
    if found:
        raise SystemExit(f"see {base}")
    print(f"{args.events} events, {kills} kills: every run completed, every step once, every webhook received")
    subprocess.run(["rm", "-r", base], check=True)


if __name__ == "__main__":
    main()
