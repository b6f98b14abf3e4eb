#!/usr/bin/env python3
"""The affiliate ledger with a year of processor events in random order and repeated, while the server is killed (-9).

    POSTRIDER=target/release/postrider tests/drills/ledger.py                           1,000 events, 100 seeds
    POSTRIDER=target/debug/postrider tests/drills/ledger.py --events 200 --seeds 2      a short run
    tests/drills/ledger.py --history 3 --first 17 --seeds 1                             repeat one run

Flow: generate a history (`history.py`), and set up a server with the program, its partners and their referrals. Each
run starts from a copy of its data directory. The first run is the reference: each event once, in order. Then one run
per seed: events are shuffled and some repeated, sent over several connections, and the server is killed after some of
them were sent and before they are answered. An event without a 200 response is sent again later, as the processor does.
The clock advances between events. Then all holds end, partners are paid, late refunds and sales follow, and partners
are paid again. A run ends with the audit, with the webhook events of each commission, and with the ledger as text. The
text must equal the reference's byte for byte; otherwise the differences are printed and the drill exits with 1.
"""

import argparse
import calendar
import collections
import concurrent.futures
import difflib
import hashlib
import hmac
import http.client
import json
import math
import os
import random
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
from events import call, pages  # noqa: E402
from history import DAY, REFERRALS, SELLERS, VISITS, History  # noqa: E402
from nodes import until  # noqa: E402

OWNER, SECRET = "owner@acme.example", "whsec_0123456789abcdef"
# Number of seeds per history.
SEEDS_A_HISTORY = 10
# The clock advances by SPAN, SPANS times during the first act: in total less than a year, the longest hold.
SPAN, SPANS = 60 * DAY, 4
BROWSER = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
# Events that must be sent exactly once for an object.
ONCE = {
    "affiliate-commissions": ["commission.created", "commission.paid"],
    "affiliate-referrals": ["referral.created", "referral.converted"],
}
CAMPAIGNS = {
    "Partners": {
        "commission_type": "percent", "commission_bps": 2_000, "recurring_months": 36, "hold_days": 30,
        "max_commission_cents": 40_000, "second_tier_bps": 500, "lead_bounty_cents": 300,
        # The customer count depends on the order of arrival: with these thresholds it never changes the rate.
        "tiers": [
            {"min_paid_customers": 1, "commission_bps": 2_500},
            {"min_paid_customers": 50_000, "commission_bps": 4_000},
        ],
        "product_rates": [
            {"product_id": "prod_team", "commission_type": "percent", "commission_bps": 3_000},
            {"product_id": "prod_gift", "commission_type": "none"},
            {"product_id": "prod_fixed", "commission_type": "flat", "commission_flat_cents": 700},
        ],
    },
    "Flat": {"commission_type": "flat", "commission_flat_cents": 1_500, "hold_days": 10},
    "Once": {"commission_type": "percent", "commission_bps": 3_000, "commission_duration": "once", "hold_days": 0},
    "Slow": {"commission_type": "percent", "commission_bps": 1_500, "second_tier_bps": 200, "hold_days": 365},
}
PLANS = {"cyd": "Flat", "dan": "Once", "fay": "Slow"}
RECRUITED_BY = {"ada": "zoe", "bea": "ada", "eve": "zoe", "fay": "bea"}
METHODS = {"gus": None, "hal": "bank", "cyd": "wise"}


class Server:
    """A postrider that is killed repeatedly."""

    def __init__(self, directory):
        self.directory, self.port = directory, low_port()
        self.config, self.log, self.data = directory / "postrider.toml", directory / "log", directory / "data"
        self.config.write_text(f"""
hostname = "mx.postrider.example"
data_dir = "{self.data}"
[store]
reserve_bytes = 1048576
[api]
listen = "127.0.0.1:{self.port}"
rate_limit = "off"
[delivery]
paused = true
[testing]
clock_offset = "0s"
""")
        self.process, self.kills = None, 0
        self.up, self.killing = threading.Event(), threading.Lock()

    def start(self):
        with self.log.open("ab") as log:
            command = [os.environ["POSTRIDER"], "serve", "--config", self.config]
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        until(self.is_ready, f"the server ({self.log})")
        self.up.set()
        return self

    def is_ready(self):
        if self.process.poll() is not None:
            raise SystemExit(f"the server exited: {self.log.read_text()[-2000:]}")
        try:
            return call(self.port, None, "GET", "/healthz")[0] == 200
        except (OSError, http.client.HTTPException):
            return False

    def crash(self):
        with self.killing:
            self.up.clear()
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
            self.kills += 1
            self.start()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        if self.process.wait() != 0:
            raise SystemExit(f"the server did not exit with 0: {self.log}")

    def try_admin(self, *words):
        """The output of a command, or `None` if it failed or the server died."""
        command = [os.environ["POSTRIDER"], "admin", "--config", self.config, *words, "--json"]
        output = subprocess.run(command, capture_output=True, text=True)
        self.output = output.stdout + output.stderr
        return json.loads(output.stdout) if output.returncode == 0 and output.stdout.strip() else None

    def admin(self, *words):
        answer = self.try_admin(*words)
        if answer is None:
            raise SystemExit(f"{' '.join(map(str, words))}: {self.output}")
        return answer


def low_port():
    """A port below the ephemeral range, so that it stays free while the server is down."""
    while True:
        port = random.randrange(12_000, 32_000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                pass


# Setup.


class World:
    """A program with its partners and their referrals, in a directory that is copied for each run."""

    def __init__(self, base, number, size):
        self.number, self.directory = number, base / f"history{number}"
        self.directory.mkdir()
        self.server = Server(self.directory).start()
        made = self.server.admin("account", "create", "--email", OWNER, "--plan", "dedicated", "--production")
        self.key = made["api_key"]["secret"]
        self.history = History(number, size, int(time.time()) + 5)
        self.set_up()
        self.partners = {}
        for token in ["zoe", *SELLERS]:
            self.add_partner(token)
        self.tokens = {id: token for token, id in self.partners.items()}
        self.recruit()
        self.history.name({person.mark: self.refer(person) for person in self.history.people})
        self.affiliate("partner", "payout-method", self.partners["hal"], "bank", "DE02 1203 0000 0000 2020 51")
        self.call_api("POST", f"/affiliates/{self.partners['eve']}/suspend", {})
        # A visit claims its customer from the click on: only later payments count.
        until(lambda: time.time() > self.history.start, "the start of the history")
        self.server.stop()

    def affiliate(self, *words):
        return self.server.admin("affiliate", *words)

    def call_api(self, method, path, body=None, **headers):
        status, answer = call(self.server.port, self.key, method, path, body, **headers)
        if status not in (200, 201, 202):
            raise SystemExit(f"{method} {path} {body} returned {status}: {answer}")
        return answer

    def set_up(self):
        self.affiliate("enable", "--website", "https://shop.example", "--currency", "usd", "--mode", "test")
        connected = self.affiliate("processor", "connect", "--webhook-secret", SECRET)
        self.webhook_path = connected["processor"]["webhook_url"].split("/", 3)[3]
        for name, terms in CAMPAIGNS.items():
            terms = {"name": name, "commission_duration": "recurring", "cookie_days": 365, **terms}
            if name == "Partners":
                self.affiliate("campaign", "default", json.dumps(terms))
                self.affiliate("go-live")
            else:
                self.call_api("POST", "/affiliate-campaigns", terms)
        settings = {
            "velocity_per_hour": 1_000_000, "max_bounties_per_day": 1_000_000, "count_invoiceless_payments": True,
            "payout_after_refund": "offset", "min_payout": {"usd": 5_000, "eur": 1_000},
        }
        shown = self.affiliate("set", *(f"{name}={json.dumps(value)}" for name, value in settings.items()))
        self.publishable_key = shown["program"]["publishable_key"]

    def add_partner(self, token):
        partner = {
            "email": f"{token}@partners-{token}.example", "token": token, "send_invite": False,
            "campaign_id": PLANS.get(token, "Partners"),
        }
        if METHODS.get(token, "paypal") == "paypal":
            partner["paypal_email"] = f"{token}@pay-{token}.example"
        self.partners[token] = self.call_api("POST", "/affiliates", partner)["affiliate"]["id"]
        change = {"email_opt_out": True}
        if token == "eve":
            change["commission_override"] = {"commission_type": "percent", "commission_bps": 1_234}
        self.call_api("PATCH", f"/affiliates/{self.partners[token]}", change)
        if METHODS.get(token) == "wise":
            self.affiliate("partner", "payout-method", self.partners[token], "wise", f"{token}@pay-{token}.example")

    def recruit(self):
        for token, parent in RECRUITED_BY.items():
            self.call_api("PATCH", f"/affiliates/{self.partners[token]}", {"parent_affiliate_id": self.partners[parent]})

    def refer(self, person):
        """The id of the referral or visit through which a person is attributed, or an empty string."""
        if person.way in REFERRALS:
            return self.call_api("POST", "/affiliate-referrals", person.api())["referral"]["id"]
        if person.way not in VISITS:
            return ""
        visit = {
            "key": self.publishable_key, "token": person.seller, "param": "via", "visitor": f"visitor{person.number:08}",
            "url": f"https://shop.example/?via={person.seller}", "referrer": "https://blog.example/",
        }
        visit = self.call_api("POST", "/affiliate/visits", visit, user_agent=BROWSER)["referral"]
        if person.way == "signup":
            signup = {"key": self.publishable_key, "referral": visit, "email": person.email}
            self.call_api("POST", "/affiliate/signups", {**signup, "visitor": f"visitor{person.number:08}"}, user_agent=BROWSER)
        return visit


# Runs.


class Posting:
    """Sends events, each until it is accepted."""

    def __init__(self, run, events, kill_delays):
        self.run, self.left, self.lock = run, list(reversed(events)), threading.Lock()
        self.sent, self.kill_delays = 0, kill_delays
        threads = [threading.Thread(target=self.work, daemon=True) for _ in range(run.connections)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if run.faults:
            raise SystemExit(run.faults[0])

    def work(self):
        connection = None
        while not self.run.faults:
            with self.lock:
                if not self.left:
                    return
                event = self.left.pop()
                self.sent += 1
                delay = self.kill_delays.get(self.sent)
            try:
                connection = self.post(connection, event, delay)
            except SystemExit as end:
                self.run.faults.append(str(end))

    def post(self, connection, event, delay):
        """Posts one event. With a delay, the server is killed that long after the send. Returns a usable connection."""
        id, body = event
        run, began = self.run, time.monotonic()
        try:
            run.server.up.wait()
            connection = connection or http.client.HTTPConnection("127.0.0.1", run.server.port, timeout=60)
            connection.request("POST", f"/{run.world.webhook_path}", body, run.signed(body))
            if delay is not None:
                time.sleep(delay * run.latency)
                run.server.crash()
            answer = connection.getresponse()
            output = answer.read()
        except (OSError, http.client.HTTPException):
            run.answers["none"] += 1
            self.requeue(event)
            return None
        run.answers[str(answer.status)] += 1
        if answer.status == 200 and delay is None:
            run.latency += (time.monotonic() - began - run.latency) / 50
        elif answer.status >= 500:
            self.requeue(event)
        elif answer.status != 200:
            run.faults.append(f"{id} was answered {answer.status}: {output}")
        return connection

    def requeue(self, event):
        """Sends an event again later, as the processor does."""
        with self.lock:
            self.left.insert(self.run.random_source.randrange(len(self.left) + 1), event)


class Run:
    """One run of a history, from a fresh copy."""

    def __init__(self, world, seed, kills, connections):
        self.world, self.seed, self.kills, self.connections = world, seed, kills, connections
        self.random_source = random.Random(f"run {seed}")
        self.latency, self.offset, self.faults = 0.01, 0, []
        self.answers, self.stream_events = collections.Counter(), collections.defaultdict(collections.Counter)
        self.cursor = None
        directory = world.directory / f"seed{seed}"
        shutil.copytree(world.directory / "data", directory / "data", ignore=shutil.ignore_patterns("*.sock"))
        self.server = Server(directory)

    def call_api(self, method, path, body=None):
        return call(self.server.port, self.world.key, method, path, body)

    def signed(self, body):
        at = int(time.time()) + self.offset
        tag = hmac.new(SECRET.encode(), f"{at}.{body}".encode(), hashlib.sha256).hexdigest()
        return {"stripe-signature": f"t={at},v1={tag}", "content-type": "application/json"}

    def execute(self):
        """Executes the whole run. Returns the ledger as text, and the violations found."""
        self.server.start()
        first, second = self.world.history.acts
        try:
            self.send_events(first, SPANS if self.seed else 0, self.kills * 3 // 4)
            self.pay(1, 700 * DAY)
            # Old events may be repeated after the record that they were processed has been purged.
            old = self.random_source.sample(first, len(first) // 20) if self.seed else []
            self.send_events(old + second, 0, self.kills - self.kills * 3 // 4)
            self.pay(2, 1_200 * DAY)
            found = list(self.find_violations())
            text = "\n".join(sorted(self.ledger())) + "\n"
            self.server.stop()
        finally:
            self.server.process.kill()
        (self.server.directory / "ledger").write_text(text)
        return text, found

    def send_events(self, events, spans, kills):
        """Sends events while the clock advances."""
        events = self.shuffled(events) if self.seed else events
        cuts = sorted(self.random_source.sample(range(len(events)), spans))
        for begin, end in zip([0, *cuts], [*cuts, len(events)]):
            part = events[begin:end]
            kill_delays = self.plan_kills(part, kills * len(part) // max(len(events), 1))
            Posting(self, part, kill_delays)
            self.read_event_stream()
            if end < len(events):
                self.advance_clock_to(self.offset + SPAN)

    def plan_kills(self, events, kills):
        """Numbers of the events at which the server is killed, and the delays, in units of the response time."""
        numbers = self.random_source.sample(range(1, len(events) + 1), min(kills, len(events)))
        heavy = [n for n, (id, _) in enumerate(events, 1) if id in self.world.history.heavy and kills]
        kill_delays = {number: self.random_source.random() * self.random_source.choice([0, 1, 2, 2, 5]) for number in numbers}
        return {**kill_delays, **{number: self.random_source.random() * 40 for number in heavy}}

    def shuffled(self, events):
        """Shuffles events and repeats some of them, sometimes concurrently."""
        how = self.random_source.choice(["any", "any", "any", "backwards", "nearby"])
        place = {
            "any": lambda n: self.random_source.random(),
            "backwards": lambda n: -n + self.random_source.random() * 20,
            "nearby": lambda n: n + self.random_source.random() * 60,
        }[how]
        places = [(place(number), event) for number, event in enumerate(events)]
        for there, event in self.random_source.sample(places, len(places) // 4):
            places.append((self.random_source.choice([there, place(self.random_source.randrange(len(events)))]), event))
        return [event for _, event in sorted(places, key=lambda one: one[0])]

    # The clock.

    def advance_clock_to(self, offset):
        """Advances the clock to an offset, even if the server is killed meanwhile."""
        # Stream events older than a month are purged: read them first.
        self.read_event_stream()
        def has_reached():
            clock = self.server.try_admin("clock")
            if clock and (left := math.ceil(offset - clock["offset_s"])) > 0:
                self.maybe_kill_during(lambda: self.server.try_admin("clock", "advance", str(left)))
            return clock and left <= 0

        until(has_reached, f"the clock to go on to {offset}")
        self.offset = offset

    def maybe_kill_during(self, do):
        """Executes an action; sometimes kills the server meanwhile."""
        if not self.kills or self.random_source.random() < 0.5:
            return do()
        killer = threading.Timer(self.random_source.choice([0.02, 0.2, 1]) * self.random_source.random(), self.server.crash)
        killer.start()
        try:
            return do()
        except (OSError, http.client.HTTPException):
            return None
        finally:
            killer.join()

    def all_are_earned(self):
        """Returns whether no commission is pending whose hold has ended."""
        now = time.time() + self.offset
        due = [line for line in self.all("/affiliate-commissions?status=pending&") if unix_time(line["earns_at"]) <= now]
        return {line["processor_invoice_id"] for line in due} <= self.world.history.disputed

    # Payouts.

    def pay(self, number, offset):
        """After all holds, runs a payout: draft, approve, and mark each payout paid or failed, despite kills."""
        self.advance_clock_to(offset)
        until(self.all_are_earned, "the holds to end")
        began = time.monotonic()
        while not (run := self.payout_run(number)):
            if time.monotonic() - began > 60:
                raise SystemExit(f"payout run {number} was not drafted: {self.server.output}")
            drafted = self.maybe_kill_during(lambda: self.server.try_admin("affiliate", "run", "draft"))
            if drafted and not drafted["run"]:
                return  # no partner reaches the minimum
            # The lease of an interrupted job expires after a minute; then another job continues.
            self.advance_clock_to(self.offset + 61)
        totals = [f"--total={currency}={cents}" for currency, cents in run["totals"].items()]
        approve = ["affiliate", "run", "approve", run["id"], "--rev", str(run["rev"]), *totals]
        def is_approved():
            self.maybe_kill_during(lambda: self.server.try_admin(*approve))
            return self.payout_run(number)["status"] != "draft"

        until(is_approved, "the approval of the run")
        for payout in self.all(f"/affiliate-payouts?run_id={run['id']}&"):
            self.finish_payout(payout)
        self.advance_clock_to(self.offset + 61)
        until(lambda: self.payout_run(number)["status"] == "completed", "the completion of the run")
        until(self.lines_have_followed, "the commissions to follow their payouts")

    def payout_run(self, number):
        runs = self.server.admin("affiliate", "run", "list")["data"]
        return runs[-number] if len(runs) >= number else None

    def finish_payout(self, payout):
        path, partner = f"/affiliate-payouts/{payout['id']}", self.world.tokens[payout["affiliate_id"]]
        fail = ["affiliate", "payout", "fail", payout["id"], "--reason", "The account is closed"]
        while payout["status"] == "processing":
            if partner == "hal":
                self.maybe_kill_during(lambda: self.server.try_admin(*fail))
            else:
                self.maybe_kill_during(lambda: self.call_api("POST", f"{path}/mark-paid", {"reference": f"to {partner}"}))
            payout = self.call_api("GET", path)[1]["payout"]

    def lines_have_followed(self):
        lines = self.all("/affiliate-commissions?status=earned&")
        return not any(line["payout_id"] for line in lines)

    # Results.

    def all(self, path):
        return list(pages(self.server, self.world.key, path, "data"))

    def read_event_stream(self):
        """Reads the event stream until it contains all commissions."""
        def has_all_events():
            path = "/webhook-events?order=asc&limit=100" + (f"&cursor={self.cursor}" if self.cursor else "")
            status, page = self.call_api("GET", path)
            if status != 200:
                raise SystemExit(f"GET {path} returned {status}: {page}")
            self.cursor = page["next_cursor"]
            for event in page["events"]:
                kind, data = event["type"], event["data"]
                thing = data.get("commission") or data.get("referral") or {}
                self.stream_events[kind, thing.get("id")][data["event_id"]] += 1
            return not page["has_more"] and all(("commission.created", line) in self.stream_events for line in lines)

        lines = [line["id"] for line in self.all("/affiliate-commissions?")]
        until(has_all_events, "events of all commissions in the stream")

    def find_violations(self):
        """Violations that do not depend on the reference."""
        self.read_event_stream()
        audit = self.server.try_admin("affiliate", "audit")
        if audit is None or not audit["ok"]:
            yield f"the audit: {self.server.output[:2000]}"
        for event in self.server.admin("affiliate", "processor", "events", "--status", "failed")["data"]:
            yield f"failed event: {event}"
        if "panicked" in (log := self.server.log.read_text()):
            yield f"a panic: {log[log.index('panicked') - 200:][:600]}"
        for path, kinds in ONCE.items():
            for thing in self.all(f"/{path}?"):
                yield from self.find_wrong_events(thing, kinds)

    def find_wrong_events(self, thing, kinds):
        for kind in kinds:
            times = self.stream_events[kind, thing["id"]]
            is_due = kind.endswith("created") or thing.get("paid_at" if kind.endswith("paid") else "converted_at")
            if len(times) != bool(is_due) or max(times.values(), default=1) > 1:
                yield f"{kind} was sent {sum(times.values())} times with {len(times)} event ids for {thing}"

    def ledger(self):
        """The ledger as sorted lines of JSON, without ids and times, which differ between runs."""
        runs = reversed(self.server.admin("affiliate", "run", "list")["data"])
        runs = {run["id"]: number for number, run in enumerate(runs, 1)}
        payouts = {None: None}
        for payout in self.all("/affiliate-payouts?"):
            partner = self.world.tokens[payout["affiliate_id"]]
            payouts[payout["id"]] = f"run {runs[payout['run_id']]} {partner} {payout['currency']}"
            kept = ["amount_cents", "method", "status", "external_reference", "failure_reason"]
            yield json_line("payout", payouts[payout["id"]], {name: payout[name] for name in kept})
        referrals = {}
        for referral in self.all("/affiliate-referrals?"):
            name = referral["email"] or referral["processor_customer_id"]
            referrals[referral["id"]] = name
            kept = ["status", "source", "processor_customer_id", "sub_id", "blocked_reason", "revenue_cents", "currency",
                    "converted_at"]
            brought = {"by": self.world.tokens[referral["affiliate_id"]]}
            yield json_line("referral", name, brought | {name: referral[name] for name in kept})
        balances = collections.Counter()
        for line in self.all("/affiliate-commissions?"):
            partner = self.world.tokens[line["affiliate_id"]]
            balances[partner, line["currency"], line["status"]] += line["amount_cents"]
            kept = ["status", "amount_cents", "sale_amount_cents", "currency", "description", "processor_charge_id",
                    "reverse_reason"]
            words = {"to": partner, "of": referrals[line["referral_id"]], "payout": payouts[line["payout_id"]]}
            name = f"{line['processor_invoice_id']}/{line['tier']}"
            yield json_line("line", name, words | {name: line[name] for name in kept})
        for (partner, currency, status), cents in balances.items():
            yield json_line("balance", f"{partner} {currency} {status}", cents)
        for partner in self.all("/affiliates?"):
            yield json_line("partner", self.world.tokens[partner["id"]], {n: partner[n] for n in ["status", "payout_ready"]})
        for review in self.server.admin("affiliate", "review", "list")["data"]:
            yield json_line("review", referrals[review["referral_id"]], review["flags"])


def json_line(kind, name, words):
    return json.dumps([kind, name, words], sort_keys=True)


def unix_time(text):
    """Unix time of a UTC timestamp."""
    return calendar.timegm(time.strptime(text[:19], "%Y-%m-%dT%H:%M:%S"))


# Comparison.


def compare(world, seed, args):
    """Executes a run and compares it with the reference. Prints a line of the table and returns the differences."""
    began = time.monotonic()
    run = Run(world, seed, args.kills, args.connections) if seed else Run(world, 0, 0, 1)
    text, found = run.execute()
    if seed and text != world.reference:
        diff = difflib.unified_diff(world.reference.splitlines(), text.splitlines(), "in order", f"seed {seed}", "", "", 0)
        found += list(diff)[:40]
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    answers = " ".join(f"{status}:{count}" for status, count in sorted(run.answers.items()))
    line = (f"{world.number:7} {seed:5} {run.server.kills:6} {answers:32} {text.count(chr(10)):6} {digest:17}"
            f" {time.monotonic() - began:6.1f} s  {'DIFFERS' if found else 'equal' if seed else 'reference'}")
    print(line, flush=True)
    if not found:
        shutil.rmtree(run.server.directory)
    return text, found, run


def drill(args, base):
    """Runs all histories with their seeds. Returns the differences and the totals."""
    found, sums = {}, collections.Counter()
    print("history  seed  kills answers                           lines ledger              time")
    seeds = list(range(args.first, args.first + args.seeds))
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        while seeds:
            number = args.history or (seeds[0] - 1) // SEEDS_A_HISTORY + 1
            mine = [seed for seed in seeds if args.history or (seed - 1) // SEEDS_A_HISTORY + 1 == number]
            seeds = seeds[len(mine):]
            world = World(base, number, args.events)
            world.reference, violations, run = compare(world, 0, args)
            found |= {(number, 0): violations} if violations else {}
            for seed, (_, violations, run) in zip(mine, pool.map(lambda seed: compare(world, seed, args), mine)):
                found |= {(number, seed): violations} if violations else {}
                sums += collections.Counter({"runs": 1, "kills": run.server.kills, "sent": run.answers.total()})
                sums["not answered"] += run.answers["none"]
            if not any(history == number for history, _ in found):
                shutil.rmtree(world.directory)
    return found, sums


def main():
    parser = argparse.ArgumentParser(description="The affiliate ledger under shuffled, doubled events and kill -9.")
    parser.add_argument("--events", type=int, default=1_000)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--kills", type=int, default=60, help="kills per seed while events are sent")
    parser.add_argument("--connections", type=int, default=4, help="concurrent connections")
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--history", type=int, help="use this history for all seeds instead of one for every ten")
    parser.add_argument("--jobs", type=int, default=1, help="concurrent runs")
    args = parser.parse_args()
    base = Path(tempfile.mkdtemp(prefix="ledger-"))
    began = time.monotonic()
    found, sums = drill(args, base)
    for (history, seed), differences in found.items():
        print(f"\nhistory {history}, seed {seed}:", *differences, sep="\n")
    print(f"\n{sums['runs']} runs of {args.events} events; sent {sums['sent']} times, of which {sums['not answered']} were "
          f"not answered; killed {sums['kills']} times; {len(found)} differ; {time.monotonic() - began:.0f} s")
    if found:
        raise SystemExit(f"see {base}")
    shutil.rmtree(base)


if __name__ == "__main__":
    main()
