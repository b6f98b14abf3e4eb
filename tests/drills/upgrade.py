#!/usr/bin/env python3
"""A rolling upgrade of three nodes on one PostgreSQL, while mail is accepted and delivered all the time.

    tests/drills/upgrade.py --old OLD --new NEW    from one program to the other and back, also on the embedded store
    tests/drills/upgrade.py --new NEW              a rolling restart of one program, beside rows of a later release

Flow: start three nodes with OLD, senders by SMTP and by the API, a mail host and a webhook receiver; replace one node
after the other as docs/user/upgrade.md says: stop it (SIGTERM drains it), start NEW, wait until it is healthy. Then the
same back to OLD. Then end the load, wait until nothing is queued, and compare the mail that was acknowledged with the
mail that the host received, the stored emails, their events, the counts of the metrics, and the webhooks received.

With one program, rows are written as a later release could write them: events, jobs, counts and queue commands that the
program does not know. It must leave them as they are, and everything else must go on.

A sender acts as RFC 5321 section 5.1 asks: if one host refuses a message or closes the connection, it tries the next.
The drill fails if all hosts refuse a message, if a final dot is not answered, if a message is lost or delivered twice,
if an event is missing or recorded twice, if a webhook is missing or received twice, or if a node does not exit with 0.
On the embedded store, OLD must deliver after NEW, or refuse to start with the reason and change no file.
"""

import argparse
import collections
import hashlib
import hmac
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.dont_write_bytecode = True
from events import Receiver, automation, call, pages  # noqa: E402
from nodes import DOMAIN, DOMAINS, OWNER, Load, Node, Postgres, Refused, Sink, space, start_cluster, until  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
SMTP_SENDERS, API_SENDERS = 6, 2
# Pause between the messages of a sender: the drill tests upgrades, not speed.
PAUSE_S = 0.1
# A sender connects to the next host after this many messages, so that a replaced node gets mail again.
MESSAGES_A_CONNECTION = 20
# Every so many messages, the mail host refuses the recipient at first.
DEFERRED_EVERY = 10
SETTINGS = """
[webhooks]
allow_http = true
allow_private_destinations = true
retry = ["0s", "1s", "1s", "1s", "1s", "1s", "1s", "1s", "1s", "1s"]
"""
# Key spaces (store/src/key.rs).
EVENT, OUTBOX, TASK, METRIC, AUTOMATION_DUE, QUEUE_COMMAND = 20, 30, 24, 54, 77, 162
# Event types of each delivered email, and of each run of the automation.
OF_EMAIL = ("email.sent", "email.delivered")
OF_RUN = {"automation.started": 1, "automation.step_completed": 3, "automation.completed": 1}
SUBSCRIBED = (*OF_EMAIL, "email.delivery_delayed", *OF_RUN)


class DeferringSink(Sink):
    """A mail host that refuses some recipients once, so that another node, or another release, may try again."""

    def __init__(self):
        self.deferred = set()
        super().__init__()

    def is_deferred(self, line):
        recipient = line.split(b"<")[1].split(b">")[0]
        with self.lock:
            if not recipient.startswith(b"later") or recipient in self.deferred:
                return False
            self.deferred.add(recipient)
            return True


def recipient_of(number):
    name = "later" if number % DEFERRED_EVERY == 0 else "u"
    return f"{name}{number}@d{number % DOMAINS}.example"


class Senders:
    """Senders that know all hosts, as a mail server or an SDK behind a list of hosts does."""

    def __init__(self, nodes, key):
        self.nodes, self.key, self.running = nodes, key, True
        self.lock = threading.Lock()
        self.next = 0
        self.acknowledged, self.refusals = {}, collections.Counter()
        self.refused_by_all, self.in_doubt, self.repeated = [], [], 0
        self.events = {}
        kinds = [self.send_by_smtp] * SMTP_SENDERS + [self.send_by_api] * API_SENDERS + [self.post_events]
        self.threads = [threading.Thread(target=kind, args=(n,), daemon=True) for n, kind in enumerate(kinds)]
        for thread in self.threads:
            thread.start()

    def take_number(self):
        with self.lock:
            self.next += 1
            return self.next

    def try_hosts(self, number, first, attempt):
        """Tries one host after the other until one accepts. Returns its place."""
        while True:
            for turn in range(len(self.nodes)):
                place = (first + turn) % len(self.nodes)
                try:
                    attempt(self.nodes[place])
                except (Refused, OSError, http.client.HTTPException) as refusal:
                    with self.lock:
                        self.refusals[f"{type(refusal).__name__}: {str(refusal)[:80]}"] += 1
                    continue
                with self.lock:
                    self.acknowledged[number] = self.nodes[place].name
                return place
            with self.lock:
                self.refused_by_all.append(number)
            time.sleep(0.1)

    def send_by_smtp(self, place):
        sender = SmtpSender()
        while self.running:
            number = self.take_number()
            if sender.sent >= MESSAGES_A_CONNECTION:
                sender.close()
                place += 1

            def attempt(node):
                try:
                    sender.send(node, number)
                except (Refused, OSError):
                    if sender.is_unanswered:
                        with self.lock:
                            self.in_doubt.append(number)
                    sender.close()
                    raise

            place = self.try_hosts(number, place, attempt)
            time.sleep(PAUSE_S)
        sender.close()

    def send_by_api(self, place):
        while self.running:
            number = self.take_number()
            body = {"from": f"app@{DOMAIN}", "to": recipient_of(number), "subject": f"number {number}", "text": "x" * 70}

            def attempt(node):
                # The idempotency key makes it safe to repeat a request whose response was lost.
                self.post(node, "/emails", body, f"number-{number}")

            place = self.try_hosts(number, place, attempt) + 1
            time.sleep(PAUSE_S)

    def post_events(self, place):
        while self.running:
            number = self.take_number()
            body = {"name": "order.paid", "user_id": f"user_{number}", "email": recipient_of(number), "data": {"number": number}}

            def attempt(node):
                self.events[number] = self.post(node, "/events", body, f"order-{number}")

            place = self.try_hosts(number, place, attempt) + 1
            time.sleep(2 * PAUSE_S)

    def post(self, node, path, body, key):
        try:
            status, answer = call(node.api, self.key, "POST", path, body, idempotency_key=key)
        except ConnectionRefusedError:
            raise
        except (OSError, http.client.HTTPException):
            with self.lock:
                self.repeated += 1
            raise
        if status >= 300:
            raise Refused(f"{status} {answer}")
        return answer

    def stop(self):
        self.running = False
        for thread in self.threads:
            thread.join()


class SmtpSender:
    """A connection of an SMTP client, opened when it is needed."""

    expect, send_command = Load.expect, Load.send_command

    def __init__(self):
        self.connection, self.lines, self.node, self.sent, self.is_unanswered = None, None, None, 0, False

    def send(self, node, number):
        """Sends one message. Raises `Refused`, or `OSError` if the connection ends."""
        self.is_unanswered = False
        if self.node is not node:
            self.close()
        if self.connection is None:
            self.connection = socket.create_connection(("127.0.0.1", node.relay), timeout=60)
            self.lines, self.node, self.sent = self.connection.makefile("rb"), node, 0
            self.expect(self.lines, b"220")
            self.command(b"EHLO load.example\r\n", b"250")
        self.command(f"MAIL FROM:<app@{DOMAIN}>\r\n".encode(), b"250")
        self.command(f"RCPT TO:<{recipient_of(number)}>\r\n".encode(), b"250")
        self.command(b"DATA\r\n", b"354")
        text = f"From: app@{DOMAIN}\r\nTo: u@d.example\r\nSubject: number {number}\r\n\r\n" + "x" * 70 + "\r\n.\r\n"
        self.is_unanswered = True
        self.connection.sendall(text.encode())
        try:
            self.expect(self.lines, b"250")
        except Refused:
            self.is_unanswered = False
            raise
        self.is_unanswered = False
        self.sent += 1

    def command(self, text, wanted):
        self.send_command(self.connection, self.lines, text, wanted)

    def close(self):
        if self.connection:
            self.connection.close()
        self.connection = self.node = None


class SlowReceiver(Receiver):
    """Answers late, so that requests are in progress whenever a node stops or joins. Knows several endpoints."""

    def __init__(self):
        super().__init__()
        self.secrets = {}

    def receive_webhook(self, headers, body):
        time.sleep(0.3)
        event = json.loads(body)
        t, v1 = (part.split("=", 1)[1] for part in headers["service-signature"].split(","))
        right = hmac.new(self.secrets[event["type"]].encode(), f"{t}.".encode() + body, hashlib.sha256).hexdigest()
        with self.lock:
            if not hmac.compare_digest(right, v1):
                self.forged += 1
                return 400
            if self.chance.random() < 0.02:
                return 503
            self.got[event["type"]][event["data"]["event_id"]] += 1
        return 200


def is_healthy(node):
    """Returns whether `postrider status` reports no problem, as docs/user/upgrade.md asks to wait for."""
    return node.is_ready() and subprocess.run([node.program, "status", "--config", node.config], capture_output=True).returncode == 0


class Rollout:
    """Replaces the nodes one after the other while the senders go on."""

    def __init__(self, args, nodes, senders, database):
        self.args, self.nodes, self.senders, self.database = args, nodes, senders, database
        self.began, self.found = time.monotonic(), []

    def log_progress(self, text):
        print(f"{time.monotonic() - self.began:6.1f} s  acknowledged {len(self.senders.acknowledged):6}  {text}", flush=True)

    def replace_nodes(self, program, name):
        for node in self.nodes:
            stopped_at = time.monotonic()
            status = node.end(signal.SIGTERM)
            drained_s = time.monotonic() - stopped_at
            if status != 0:
                self.found.append(f"{node.name} exited with {status} when it was stopped: {log_end(node)}")
            before = len(self.senders.acknowledged)
            node.program = program
            node.start(wait=False)
            until(lambda: is_healthy(node), f"{node.name} with {name}")
            down_s = time.monotonic() - stopped_at
            meanwhile = len(self.senders.acknowledged) - before
            self.log_progress(f"{node.name} runs {name}: drained in {drained_s:.1f} s, back after {down_s:.1f} s; "
                              f"the others accepted {meanwhile} meanwhile")
            if meanwhile == 0:
                self.found.append(f"nothing was accepted while {node.name} was replaced")
            self.wait_for_mail_at(node)
            self.read_on_all_nodes()
            time.sleep(self.args.seconds)

    def wait_for_mail_at(self, node):
        """Waits until the replaced node has accepted mail again."""
        before = len(self.senders.acknowledged)

        def has_accepted():
            with self.senders.lock:
                return node.name in list(self.senders.acknowledged.values())[before:]

        until(has_accepted, f"mail at {node.name}")

    def read_on_all_nodes(self):
        """Each node must read what the others have written, whatever their release."""
        key, newest = self.senders.key, {}
        status, answer = call(self.nodes[0].api, key, "GET", "/emails?limit=5")
        if status != 200:
            self.found.append(f"GET /emails at node1: {status} {answer}")
            return
        for node in self.nodes:
            for email in answer["emails"]:
                for path in (f"/emails/{email['id']}", f"/emails/{email['id']}/events", f"/emails/{email['id']}/raw"):
                    status, text = call(node.api, key, "GET", path)
                    if status != 200:
                        newest[node.name] = f"{node.name} cannot read {path}: {status} {text}"
        self.found.extend(newest.values())


def log_end(node):
    return (node.directory / "log").read_text(errors="replace")[-1500:]


class LaterRelease:
    """Rows as a later release could write them while releases are mixed."""

    PARTITIONS = 64

    def __init__(self, database):
        self.database, self.rows, self.counts = database, {}, None

    def write(self):
        """Writes the rows: in each partition an event, a job and a command for the queue; and a new kind of count."""
        text = self.database.sql("SELECT encode(k, 'hex') || ' ' || convert_from(v, 'UTF8') FROM postrider_rows "
                                 f"WHERE {space(EVENT)} AND convert_from(v, 'UTF8') LIKE '%email.sent%' LIMIT 1")
        event_key, row = text.split(" ", 1)
        row = row.replace("email.sent", "email.of_a_later_release")
        account, prefix = event_key[2:34], event_key[:-4]
        for partition in range(self.PARTITIONS):
            at, place = f"{prefix}{0xFF00 + partition:04x}", f"{partition:04x}"
            self.rows[at] = row.encode()
            self.rows[f"{OUTBOX:02x}{place}{at[-32:]}"] = bytes.fromhex(at)
            self.rows[f"{AUTOMATION_DUE:02x}{place}80{'00' * 7}01{account}{'00' * 32}"] = b'[1,{"work":{"do":"later"}}]'
            command = b'[1,{"order":"hold","filter":{"of_a_later_release":true}}]'
            # Its age is in its id: an old command expires.
            self.rows[f"{QUEUE_COMMAND:02x}{place}{at[-32:]}"] = command
        values = ",".join(f"('\\x{at}', '\\x{value.hex()}')" for at, value in self.rows.items())
        self.database.sql(f"INSERT INTO postrider_rows (k, v) VALUES {values}")
        changed = self.database.sql(
            "UPDATE postrider_rows SET v = convert_to(replace(convert_from(v, 'UTF8'), '[1,{', "
            f"'[1,{{\"of_a_later_release\":7,'), 'UTF8') WHERE {space(METRIC)} RETURNING encode(k, 'hex')")
        self.counts = {line for line in changed.splitlines() if not line.startswith("UPDATE")}

    def differences(self):
        keys = ",".join(f"'\\x{at}'" for at in self.rows)
        text = self.database.sql(f"SELECT encode(k, 'hex') || ' ' || encode(v, 'hex') FROM postrider_rows WHERE k IN ({keys})")
        kept = dict(line.split() for line in text.splitlines())
        spaces = collections.Counter(at[:2] for at, value in self.rows.items() if kept.get(at) != value.hex())
        found = [f"{count} rows of a later release were changed or deleted in the key space {int(number, 16)}"
                 for number, count in spaces.items()]
        text = self.database.sql(f"SELECT encode(k, 'hex') FROM postrider_rows WHERE {space(METRIC)} "
                                 "AND convert_from(v, 'UTF8') LIKE '%\"of_a_later_release\":7%'")
        if lost := self.counts - set(text.splitlines()):
            found.append(f"{len(lost)} of {len(self.counts)} counts of a later release are lost")
        print(f"rows of a later release: {len(self.rows)} written, {len(self.rows) - sum(spaces.values())} left as they were; "
              f"{len(self.counts - lost)} of {len(self.counts)} rows of counts have its count")
        return found


def set_up_account(node, key, receiver):
    def call_api(path, body):
        status, answer = call(node.api, key, "POST", path, body)
        if status >= 300:
            raise SystemExit(f"POST {path}: {status} {answer}")
        return answer

    # One endpoint for each type, so that many partitions have webhooks.
    for kind in SUBSCRIBED:
        receiver.secrets[kind] = call_api("/webhooks", {"url": receiver.url, "events": [kind]})["secret"]
    made = call_api("/automations", automation())["automation"]
    call_api(f"/automations/{made['id']}", {"action": "activate"})
    return made["id"]


def drill(args, base):
    """Runs the drill on PostgreSQL. Returns the differences."""
    database = Postgres(base, "postgres").init().start("fsync=off", "full_page_writes=off")
    database.sql("CREATE DATABASE mail", "postgres")
    url = f"postgres://postgres@127.0.0.1:{database.port}/mail?sslmode=disable"
    sink, receiver = DeferringSink(), SlowReceiver()
    nodes = [Node(base, f"node{n}", url, sink.port, SETTINGS) for n in (1, 2, 3)]
    senders = None
    try:
        for node in nodes:
            node.program = args.old
        key = start_cluster(nodes)["api_key"]["secret"]
        automation_id = set_up_account(nodes[0], key, receiver)
        senders = Senders(nodes, key)
        rollout = Rollout(args, nodes, senders, database)
        time.sleep(args.seconds)
        rollout.log_progress("three nodes run the old release")
        later = LaterRelease(database) if args.old == args.new else None
        for name in args.roll.split(","):
            if later and not later.rows:
                later.write()
            rollout.replace_nodes({"old": args.old, "new": args.new}[name], f"the {name} release")
        senders.stop()
        rollout.log_progress("the load has ended")
        until(lambda: database.sql(f"SELECT count(*) FROM postrider_rows WHERE {space(TASK)}") == "0", "an empty queue")
        rollout.log_progress("the queue is empty")
        checks = Checks(nodes[0], senders, sink, receiver, automation_id)
        found = rollout.found + list(checks.differences())
        checks.print_summary()
        if later:
            found += later.differences()
        for node in nodes:
            if node.end(signal.SIGTERM) != 0:
                found.append(f"{node.name} did not exit with 0: {log_end(node)}")
        return found
    finally:
        if senders:
            senders.running = False
        for node in nodes:
            if node.process and node.process.poll() is None:
                node.end(signal.SIGKILL)
        database.end()


class Checks:
    """Compares what senders, mail host and webhook receiver saw with what is stored."""

    def __init__(self, node, senders, sink, receiver, automation_id):
        self.node, self.senders, self.sink, self.receiver = node, senders, sink, receiver
        self.automation_id = automation_id
        self.stored, self.stream = [], {}

    def pages(self, path, name):
        return pages(self.server(), self.senders.key, path, name)

    def server(self):
        self.node.port = self.node.api
        return self.node

    def wait_for_runs(self):
        def are_done():
            status, answer = call(self.node.api, self.senders.key, "GET", f"/automations/{self.automation_id}")
            counts = answer["automation"]["counts"]
            return status == 200 and not (counts["running"] + counts["waiting"])

        until(are_done, "the automation's runs")

    def differences(self):
        senders = self.senders
        self.wait_for_runs()
        numbers = set(senders.acknowledged)
        until(lambda: len(self.sink.got) >= len(numbers), "the mail of the automation")
        self.stored = list(self.pages("/emails?", "emails"))
        until(lambda: all(email["status"] == "delivered" for email in self.pages("/emails?", "emails")), "the records")
        if senders.refused_by_all:
            yield f"all hosts refused {len(senders.refused_by_all)} messages: {senders.refused_by_all[:5]}"
        if senders.in_doubt:
            yield f"{len(senders.in_doubt)} final dots were not answered: {senders.in_doubt[:5]}"
        yield from self.compare_mail(numbers)
        yield from self.compare_events(len(numbers))
        yield from self.compare_webhooks()
        yield from self.compare_metrics(len(numbers))

    def compare_mail(self, numbers):
        subjects = collections.Counter(email["subject"] for email in self.stored)
        wanted = collections.Counter(f"number {n}" for n in numbers)
        if subjects != wanted:
            yield f"stored emails: {len(wanted - subjects)} are missing, {len(subjects - wanted)} are stored twice"
        if lost := [n for n in numbers if n not in self.sink.got]:
            yield f"{len(lost)} acknowledged messages were never received: {lost[:5]}"
        if twice := [n for n, count in self.sink.got.items() if count > 1]:
            yield f"{len(twice)} messages were delivered twice: {twice[:5]}"

    def compare_events(self, emails):
        stream = collections.defaultdict(collections.Counter)
        about = collections.Counter()
        for event in self.pages("/webhook-events?order=asc&", "events"):
            if event["type"] not in SUBSCRIBED:
                continue
            stream[event["type"]][event["id"]] += 1
            about[event["type"], event["data"].get("email_id")] += 1
        self.stream = stream
        wanted = {kind: emails for kind in OF_EMAIL} | {kind: each * len(self.senders.events) for kind, each in OF_RUN.items()}
        for kind, count in wanted.items():
            if len(stream[kind]) != count or max(stream[kind].values(), default=1) > 1:
                yield f"the stream has {sum(stream[kind].values())} {kind} with {len(stream[kind])} ids; expected {count}"
        if twice := [key for key, count in about.items() if key[0] in OF_EMAIL and key[1] and count > 1]:
            yield f"{len(twice)} events of emails are recorded twice: {twice[:3]}"

    def compare_webhooks(self):
        total = sum(map(len, self.stream.values()))
        try:
            until(lambda: sum(map(len, self.receiver.got.values())) >= total, "the webhooks")
        except SystemExit:
            pass
        for kind, ids in self.stream.items():
            got = self.receiver.got[kind]
            if missing := ids.keys() - got.keys():
                yield f"{len(missing)} {kind} were never received by webhook"
            if twice := [event for event, count in got.items() if count > 1]:
                yield f"{len(twice)} {kind} were received twice by webhook: {twice[:3]}"
        if self.receiver.forged:
            yield f"{self.receiver.forged} webhook signatures were invalid"

    def compare_metrics(self, emails):
        def totals():
            status, answer = call(self.node.api, self.senders.key, "GET", "/emails/metrics")
            return answer["metrics"]["totals"] if status == 200 else {"status": status}

        try:
            until(lambda: totals().get("delivered") == emails, "the metrics", 15)
        except SystemExit:
            yield f"the metrics are {totals()}; expected {emails} delivered"

    def print_summary(self):
        senders = self.senders
        by_node = collections.Counter(senders.acknowledged.values())
        print(f"acknowledged {len(senders.acknowledged)} ({dict(sorted(by_node.items()))}), refused by one host and sent "
              f"to the next {sum(senders.refusals.values())}, refused by all {len(senders.refused_by_all)}, final dots "
              f"without an answer {len(senders.in_doubt)}, API requests repeated after a lost response {senders.repeated}; "
              f"stored {len(self.stored)}, received {sum(self.sink.got.values())}; events {sum(map(len, self.stream.values()))}, "
              f"webhooks {sum(sum(got.values()) for got in self.receiver.got.values())}")
        for refusal, count in senders.refusals.most_common(8):
            print(f"  {count:5} × {refusal}")


class EmbeddedStore:
    """One machine: from OLD to NEW and back on the embedded store, with mail that is still queued each time."""

    def __init__(self, args, base):
        self.args, self.sink = args, DeferringSink()
        self.node = Node(base, "machine", "", self.sink.port)
        text = self.node.config.read_text()
        self.node.config.write_text(text.replace('engine = "postgres"\nurl = ""', ""))
        self.store = self.node.directory / "data" / "store"
        self.number, self.accepted = DEFERRED_EVERY, 0

    def drill(self):
        self.node.program = self.args.old
        self.node.start()
        self.node.admin("account", "create", "--email", OWNER, "--plan", "dedicated", "--production")
        self.node.admin("domain", "create", DOMAIN, "--account", OWNER, "--verified")
        self.send()
        for program in (self.args.new, self.args.old):
            self.stop()
            self.node.program = program
            before = self.fingerprint()
            self.node.start(wait=False)
            if not self.is_up():
                return list(self.refusal(before))
            self.send()
        until(lambda: len(self.sink.got) == self.accepted, "the mail of the embedded store")
        self.stop()
        print("embedded store: the old release works after the new one, and all mail was delivered")
        return []

    def send(self):
        """Sends two messages. The mail host refuses one of them at first, so that it is still queued when the server stops."""
        sender = SmtpSender()
        for number in (self.number, self.number + 1):
            sender.send(self.node, number)
        self.number += DEFERRED_EVERY
        self.accepted += 2
        sender.close()

    def stop(self):
        if self.node.end(signal.SIGTERM) != 0:
            raise SystemExit(f"the server did not exit with 0: {log_end(self.node)}")

    def is_up(self):
        """Waits until the server is ready or has ended. Returns whether it runs."""
        until(lambda: self.node.process.poll() is not None or is_listening(self.node), "a start or a refusal")
        return self.node.process.poll() is None

    def fingerprint(self):
        """The content of every file of the store."""
        files = sorted(path for path in self.store.rglob("*") if path.is_file())
        return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}

    def refusal(self, before):
        reason = log_end(self.node).strip().splitlines()[-1]
        print(f"embedded store: the old release refuses to start after the new one: {reason}")
        if "newer" not in reason:
            yield f"the refusal of the old release does not name a newer version: {reason}"
        if changed := [name for name, hash in self.fingerprint().items() if before.get(name) != hash]:
            yield f"the old release refused to start and changed {changed}"
        # The new release goes on with everything that was accepted.
        self.node.program = self.args.new
        self.node.start()
        until(lambda: len(self.sink.got) == self.accepted, "the mail of the embedded store")
        self.stop()


def is_listening(node):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", node.relay)) == 0


def main():
    parser = argparse.ArgumentParser(description="A rolling upgrade of three nodes under load.")
    parser.add_argument("--old", help="program of the older release; the new one if it is omitted")
    parser.add_argument("--new", default=str(ROOT / "target/debug/postrider"), help="program of the newer release")
    parser.add_argument("--seconds", type=float, default=2, help="seconds between the replacements (2)")
    parser.add_argument("--roll", default="new,old", help="the programs to which the nodes are rolled, in order (new,old)")
    parser.add_argument("--keep", action="store_true", help="keep the directory")
    args = parser.parse_args()
    args.new = str(Path(args.new).resolve())
    args.old = str(Path(args.old).resolve()) if args.old else args.new
    if args.old == args.new:
        args.roll = "new"
    os.environ["POSTRIDER"] = args.new
    base = Path(tempfile.mkdtemp(prefix="postrider-upgrade-"))
    base.chmod(0o755)
    try:
        found = drill(args, base)
        if args.old != args.new:
            found += EmbeddedStore(args, base).drill()
    finally:
        if args.keep:
            print(base)
        else:
            shutil.rmtree(base, ignore_errors=True)
    for difference in found:
        print("FAILED:", difference)
    print("all lists agree" if not found else "")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
