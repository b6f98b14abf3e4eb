#!/usr/bin/env python3
"""An affiliate program with a hostile payment processor: oversized and deeply nested responses and signed events.

    POSTRIDER=target/release/postrider tests/drills/hostile_processor.py                    60 s
    POSTRIDER=target/debug/postrider tests/drills/hostile_processor.py --seconds 20         a short run

Flow: a simulated processor answers each list request with a page of 100 objects just below 64 KiB, made of nested
lists, small lists, small objects or fields with the same name, and reports more pages. The server's program uses it.
Backfills are started again and again while several connections send signed events, some of which make the server
request more, and some of which are large. The server's memory is sampled meanwhile. Exits with 1 if memory grows beyond
the limit, the server dies, the log contains a panic, or an unrelated request takes too long.

As a module: `attack(server, key, account)` sets up the program of an account and returns the processor and an `Attack`.
`Attack.run(seconds)` samples `Attack.rss` and collects failures in `Attack.faults`. The server needs `admin`, `config`,
`port` and `process`. `abuse.py` runs it beside other abusers, with `Attack.pause_s` between two events.
"""

import argparse
import hashlib
import hmac
import http.client
import http.server
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.dont_write_bytecode = True
from events import call  # noqa: E402
from ledger import OWNER, SECRET, Server  # noqa: E402
from waiting import resident_mib  # noqa: E402

OBJECTS, OBJECT_BYTES = 100, 63 << 10


def fillers():
    """JSON of nearly the maximum object size whose parsed tree would be far larger."""
    room = OBJECT_BYTES - 400

    def some(unit):
        return unit * (room // len(unit))

    yield "[" * (room // 2) + "]" * (room // 2)
    yield "[" + some("[],") + "0]"
    yield "[" + some("{},") + "0]"
    yield "{" + some('"a":{},') + '"z":0}'
    yield "[" + some("0,") + "0]"
    yield '{"data":[' + some("{},") + "{}]}"
    depth = room // 12
    yield "".join(f'{{"{nth}":' for nth in range(depth)) + "0" + "}" * depth


def page(kind, filler, random_source):
    number = random_source.randrange(1 << 40)
    fields = {
        "lines": '"amount":1,"price":{"id":"p","product":"q"}',
        "invoice_payments": '"invoice":"in_1","status":"paid","payment":{"payment_intent":"pi_1"}',
    }.get(kind, f'"created":{int(time.time()) - 100},"status":"paid","amount":1,"amount_refunded":1,"currency":"usd"')
    place = random_source.choice(["metadata", "lines", "payments", "refunds", "other"])
    objects = (f'{{"id":"x_{number}_{nth}",{fields},"{place}":{filler}}}' for nth in range(OBJECTS))
    return f'{{"object":"list","has_more":true,"data":[{",".join(objects)}]}}'.encode()


class Processor(http.server.ThreadingHTTPServer):
    """Returns the worst responses."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), ResponseHandler)
        self.port, self.random_source, self.bytes = self.server_address[1], random.Random(1), 0
        kinds = ["lines", "invoice_payments", "list"]
        self.pages = {kind: [page(kind, filler, self.random_source) for filler in fillers()] for kind in kinds}
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def answer(self, path):
        if path == "/v1/account":
            return b'{"id":"acct_1","object":"account"}'
        kind = "lines" if "/lines" in path else "invoice_payments" if "invoice_payments" in path else "list"
        return self.random_source.choice(self.pages[kind])

    def handle_error(self, *_):
        pass


class ResponseHandler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        body = self.server.answer(self.path)
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.server.bytes += len(body)

    def log_message(self, *_):
        pass


class Attack:
    """Backfills and events of a program with a hostile processor."""

    def __init__(self, server, webhook_path, key, account):
        self.affiliate, self.pause_s = affiliate(account), 0
        self.server, self.webhook_path, self.key = server, webhook_path, key
        self.rss, self.answers, self.faults, self.slowest = [], {}, [], 0.0
        self.over = threading.Event()

    def run(self, seconds, connections=8):
        works = [self.sample, self.run_backfill, self.observe] + [self.send_event] * connections
        threads = [threading.Thread(target=work, daemon=True) for work in works]
        for thread in threads:
            thread.start()
        time.sleep(seconds)
        self.over.set()
        for thread in threads:
            thread.join(90)
        return self

    def sample(self):
        while not self.over.wait(0.05):
            if self.server.process.poll() is not None:
                self.faults.append("the server died")
                return
            self.rss.append(resident_mib(self.server.process))

    def run_backfill(self):
        # The command waits for the end of the backfill. Restart it after a failure.
        command = [os.environ["POSTRIDER"], "admin", "--config", self.server.config, *self.affiliate, "backfill"]
        while not self.over.wait(0.5):
            with open(os.devnull, "wb") as nowhere:
                asking = subprocess.Popen(command, stdout=nowhere, stderr=nowhere)
            while asking.poll() is None and not self.over.wait(0.2):
                pass
            asking.kill()
            asking.wait()

    def observe(self):
        while not self.over.wait(0.1):
            began = time.monotonic()
            try:
                call(self.server.port, self.key, "GET", "/domains")
            except OSError as error:
                self.faults.append(f"another request failed: {error!r}")
            self.slowest = max(self.slowest, time.monotonic() - began)

    def send_event(self):
        random_source = random.Random(threading.get_ident())
        nasty = list(fillers())
        while not self.over.is_set():
            number = random_source.randrange(1 << 40)
            kind, extra = random_source.choice([
                ("invoice.paid", '"total":1,"amount_paid":1,"status":"paid","lines":{"has_more":true,"data":[]}'),
                ("charge.refunded", f'"payment_intent":"pi_{number}","amount":1,"amount_refunded":1'),
                ("charge.refunded", f'"amount":1,"amount_refunded":1,"refunds":{{"data":[{self.large(nasty, random_source)}]}}'),
            ])
            body = (
                f'{{"id":"evt_{number}","object":"event","type":"{kind}","created":{int(time.time())},"livemode":false,'
                f'"data":{{"object":{{"id":"o_{number}","currency":"usd",{extra}}}}}}}'
            )
            self.post(body)
            time.sleep(self.pause_s)

    def large(self, nasty, random_source):
        return ",".join(random_source.choice(nasty) for _ in range(15))

    def post(self, body):
        at = int(time.time())
        tag = hmac.new(SECRET.encode(), f"{at}.{body}".encode(), hashlib.sha256).hexdigest()
        headers = {"stripe-signature": f"t={at},v1={tag}", "content-type": "application/json"}
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=60)
        try:
            connection.request("POST", f"/{self.webhook_path}", body, headers)
            status = connection.getresponse().status
        except OSError:
            status = "none"
        finally:
            connection.close()
        self.answers[status] = self.answers.get(status, 0) + 1


def affiliate(account):
    return ["affiliate", "--account", account] if account else ["affiliate"]


def attack(server, key, account=None):
    """Sets up the program of an account and returns the processor and the attack."""
    processor, words = Processor(), affiliate(account)
    server.admin(*words, "enable", "--website", "https://shop.example", "--currency", "usd", "--mode", "test")
    terms = {"name": "All", "commission_type": "percent", "commission_bps": 2_000, "commission_duration": "recurring"}
    server.admin(*words, "campaign", "default", json.dumps(terms))
    base = f"http://127.0.0.1:{processor.port}"
    connected = server.admin(
        *words, "processor", "connect", "--webhook-secret", SECRET, "--api-base", base, "--key", "rk_test_1"
    )
    server.admin(*words, "go-live")
    webhook_path = connected["processor"]["webhook_url"].split("/", 3)[3]
    return processor, Attack(server, webhook_path, key, account)


def drill(args, base):
    server = Server(base)
    server.config.write_text(server.config.read_text() + "\n[webhooks]\nallow_private_destinations = true\nallow_http = true\n")
    server.start()
    made = server.admin("account", "create", "--email", OWNER, "--plan", "dedicated", "--production")
    processor, hostile = attack(server, made["api_key"]["secret"])
    before = resident_mib(server.process)
    hostile.run(args.seconds)
    grown = max(hostile.rss, default=before) - before
    faults = hostile.faults
    print(f"the processor sent {processor.bytes >> 20} MiB; responses to events: {hostile.answers}")
    print(f"memory: {before:.0f} MiB at first, {before + grown:.0f} at most; slowest other request {hostile.slowest:.2f} s")
    if not faults:
        server.stop()
    if grown > args.mib_max:
        faults.append(f"memory grew by {grown:.0f} MiB, limit {args.mib_max}")
    if hostile.slowest > args.slowest_s:
        faults.append(f"another request took {hostile.slowest:.1f} s")
    if processor.bytes == 0:
        faults.append("the processor received no request")
    if "panicked" in server.log.read_text(errors="replace"):
        faults.append(f"the log contains a panic: {server.log}")
    for fault in faults:
        print("FAULT", fault)
    return len(faults)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--mib-max", type=int, default=150, help="limit for the growth of the server's memory")
    parser.add_argument("--slowest-s", type=float, default=5, help="limit for an unrelated request")
    args = parser.parse_args()
    if "POSTRIDER" not in os.environ:
        parser.error("set POSTRIDER to the binary")
    with tempfile.TemporaryDirectory() as base:
        faults = drill(args, Path(base))
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
