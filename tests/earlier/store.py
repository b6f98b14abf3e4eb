#!/usr/bin/env python3
"""Stores of released versions: writes the store of a program, and reads all stores with another program.

    tests/earlier/store.py write --postrider target/debug/postrider 0.1.0    writes tests/earlier/store-0.1.0.tar.xz
    tests/earlier/store.py check --postrider target/debug/postrider          reads every store
    tests/earlier/store.py check --postrider BIN 0.1.0                       reads the stores whose name contains a word

`write` starts a server, makes objects of every noun (by the examples of all operations of the API, mail in both
directions, operator's commands, and payments that earn a commission), restarts it, and records the answer of every GET
operation. `check` unpacks a store, starts the given program on it, and compares every answer: what was recorded must be
there with the same value; new fields may be added. Then it advances the clock by 40 days, so that scheduled mail,
retries and automations continue, and runs `store check` and `affiliate audit`.

The clock of the servers stands at 2036, so that nothing expires. A store that belongs to a release is never written again.
"""

import argparse
import base64
import contextlib
import datetime
import hashlib
import hmac
import http.client
import io
import json
import lzma
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.parse
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SDK = ROOT / "sdk"
sys.dont_write_bytecode = True
for directory in ("sdk/harness", "tests/drills", "tests/peers"):
    sys.path.insert(0, str(ROOT / directory))

import answers  # noqa: E402
import fixtures  # noqa: E402
from nameserver import NameServer  # noqa: E402
from nodes import Sink, free_port, until  # noqa: E402

WRITTEN_AT = datetime.datetime(2036, 1, 1, tzinfo=datetime.timezone.utc)
# The examples of the API name this domain.
DOMAIN = "example.com"
OWNER = "owner@example.com"
PROCESSOR_SECRET = "whsec_0123456789abcdef"
# Items of a list whose details are read.
ITEMS_MAX = 10
PARAMETER = re.compile(r"\{\w+\}")
# Fields that reading changes, that name ports, or that a program may write otherwise.
VOLATILE = {"last_used_at", "next_cursor", "has_more", "waits_for"}
# Lists that grow by reading; details of their items are compared.
GROWING = {"list_logs"}
# GET operations that have no object in a store: their providers are outside.
UNREAD = {"get_suppression_import"}
# The description of a store: its version, an API key, and the recorded answers.
ABOUT = "store.json"
FILES_LEFT_OUT = {"admin.sock", "reserve", "lock"}


class BouncingSink(Sink):
    """A mail host that refuses some recipients for now; the mail of the others is received."""

    def is_deferred(self, line):
        return b"later" in line


class Server:
    """The server of a data directory. It has what `sdk/harness` needs of a server."""

    def __init__(self, binary, directory, began):
        self.binary, self.directory, self.began = binary, directory, began
        self.names, self.sink = NameServer({DOMAIN: [("A", "127.0.0.1")]}), BouncingSink()
        self.port, self.mx = free_port(), free_port()
        self.base_url = f"http://127.0.0.1:{self.port}"
        self.ready = {"domain": DOMAIN, "mx": f"127.0.0.1:{self.mx}"}
        self.api_key, self.process = "", None
        self.config = Path(directory.name) / "postrider.toml"
        made = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=x"]
        made += ["-keyout", f"{directory.name}/key.pem", "-out", f"{directory.name}/cert.pem"]
        subprocess.run(made, check=True, capture_output=True)

    def now(self):
        """The time of the server, without what `clock advance` added."""
        return self.began + datetime.timedelta(seconds=time.monotonic() - self.started)

    def start(self):
        self.started = time.monotonic()
        offset = int((self.began - datetime.datetime.now(datetime.timezone.utc)).total_seconds())
        self.config.write_text(f"""
hostname = "mx.postrider.example"
data_dir = "{self.directory.name}/data"
[tls]
certificate = "{self.directory.name}/cert.pem"
private_key = "{self.directory.name}/key.pem"
[store]
reserve_bytes = 1048576
[api]
listen = "127.0.0.1:{self.port}"
base_url = "https://mail.example.com"
rate_limit = "off"
[mx]
listen = "127.0.0.1:{self.mx}"
[dns]
servers = ["{self.names.address}"]
[delivery]
smarthost = "127.0.0.1:{self.sink.port}"
[webhooks]
allow_http = true
allow_private_destinations = true
retry = ["0s", "1s"]
[testing]
clock_offset = "{offset}s"
""")
        with open(Path(self.directory.name) / "log", "ab") as log:
            self.process = subprocess.Popen([self.binary, "serve", "--config", self.config], stdout=log, stderr=log)
        until(self.is_ready, f"the server: {self.log_end()}", 30)
        return self

    def is_ready(self):
        if self.process.poll() is not None:
            raise SystemExit(f"the server ended: {self.log_end()}")
        try:
            return self.request("GET", "/healthz")[0] == 200
        except OSError:
            return False

    def log_end(self):
        return Path(self.directory.name, "log").read_text(errors="replace")[-2000:]

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        if self.process.wait() != 0:
            raise SystemExit(f"the server did not exit with 0: {self.log_end()}")

    def admin(self, *words):
        command = [self.binary, "admin", "--config", self.config, *words, "--json"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(words)}: {done.stdout}{done.stderr}")
        return json.loads(done.stdout) if done.stdout.strip() else None

    def request(self, method, path, body=None, **headers):
        """Returns the status, the media type and the body."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            headers = {name.replace("_", "-"): value for name, value in headers.items()}
            if self.api_key:
                headers.setdefault("authorization", f"Bearer {self.api_key}")
            if body is not None and not isinstance(body, str):
                headers["content-type"], body = "application/json", json.dumps(body)
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            return answer.status, answer.headers.get_content_type(), answer.read()
        finally:
            connection.close()

    def call(self, method, path, body=None, **headers):
        status, _, text = self.request(method, path, body, **headers)
        if status >= 300:
            raise SystemExit(f"{method} {path}: {status} {text[:400]}")
        return json.loads(text)


# Writing.


def fill(server):
    """Makes objects of every noun."""
    made = server.admin("account", "create", "--email", OWNER, "--plan", "dedicated", "--production")
    server.api_key = made["api_key"]["secret"]
    server.admin("domain", "create", DOMAIN, "--account", OWNER, "--verified")
    fixtures.in_days = lambda days: (server.now() + datetime.timedelta(days=days)).strftime("%Y-%m-%dT%H:%M:%SZ")
    with contextlib.redirect_stdout(io.StringIO()):  # the refusals, which are the same every time
        recorded = answers.record(SDK, server)
    print(f"{len(recorded)} examples succeeded")
    fill_mail(server)
    fill_automation(server)
    fill_ledger(server)
    fill_access(server)


def fill_mail(server):
    """A suppression, and mail that is deferred, scheduled, suppressed, tagged, and with an attachment."""
    email = {"from": f"Ada <ada@{DOMAIN}>", "to": ["grace@example.net"], "subject": "Kept", "text": "for ever"}
    attachment = {"filename": "a.txt", "content": base64.b64encode(b"attached").decode()}
    server.call("POST", "/suppressions", {"email": "ada@example.org"})
    later = fixtures.in_days(20)
    for extra in ({"attachments": [attachment]}, {"to": ["later@example.net"]}, {"scheduled_at": later},
                  {"to": ["ada@example.org", "one@example.net"], "on_suppressed": "skip"}, {"template": "welcome", "variables": {"name": "Zoë"}}):
        body = {**email, **extra}
        if "template" in extra:
            body = {"from": email["from"], "to": email["to"], **extra}
        server.call("POST", "/emails", body)


def fill_automation(server):
    """A run that waits for a day, one that waits for an event, and then both send an email."""
    email = {"type": "send_email", "from": f"ada@{DOMAIN}", "subject": "After a day", "text": "Hello {{event.data.name}}"}
    event = {"type": "wait_for_event", "event": "kept.done", "match": "user_id", "timeout": "3d", "on_timeout": "continue"}
    for step in ({"type": "delay", "duration": "1d"}, event):
        body = {"name": f"Waits: {step['type']}", "trigger": {"event": "kept.started"}, "steps": [step, email]}
        made = server.call("POST", "/automations", body)["automation"]["id"]
        server.call("POST", f"/automations/{made}", {"action": "activate"})
    event = {"name": "kept.started", "user_id": "u9", "email": "u9@example.net", "data": {"name": "Zoë"}}
    server.call("POST", "/events", event)


def fill_ledger(server):
    """A sale that earns a commission, its payout, and a commission that is on hold."""
    terms = {"name": "At once", "commission_type": "percent", "commission_bps": 3000, "commission_duration": "once", "hold_days": 0}
    campaign = server.call("POST", "/affiliate-campaigns", terms)["campaign"]["id"]
    server.admin("affiliate", "set", 'min_payout={"usd": 100}', "count_invoiceless_payments=true")
    for token, plan in (("zoe", campaign), ("kim", None)):
        partner = {"email": f"{token}@partners.example", "token": token, "send_invite": False, "paypal_email": f"{token}@pay.example"}
        partner |= {"campaign_id": plan} if plan else {}
        partner = server.call("POST", "/affiliates", partner)["affiliate"]["id"]
        customer = {"affiliate_id": partner, "email": f"customer-of-{token}@example.net", "stripe_customer_id": f"cus_{token}"}
        server.call("POST", "/affiliate-referrals", customer)
    time.sleep(2.1)  # only payments after the referral count
    for token in ("zoe", "kim"):
        pay(server, token)

    def statuses():
        return sorted(commission["status"] for commission in server.call("GET", "/affiliate-commissions")["data"])

    until(lambda: statuses() == ["earned", "pending"], "the commissions", 30)
    run = server.admin("affiliate", "run", "draft")["run"]
    server.admin("affiliate", "run", "approve", run["id"], "--rev", str(run["rev"]), *totals_of(run))


def fill_access(server):
    """A visit of a partner's link, a claim of another account's domain, clients, a key with a policy, an operator's order."""
    key = server.admin("affiliate", "show")["program"]["publishable_key"]
    visit = {"key": key, "token": "zoe", "param": "via", "visitor": "visitor00000001", "url": "https://shop.example/?via=zoe", "referrer": ""}
    server.call("POST", "/affiliate/visits", visit, user_agent="Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0")
    server.admin("account", "create", "--email", "second@example.net", "--plan", "dedicated", "--production")
    server.admin("domain", "create", "claimed.example.org", "--account", "second@example.net", "--verified")
    server.call("POST", "/domains/claims", {"name": "claimed.example.org"})
    server.call("POST", "/oauth/register", {"client_name": "Editor", "redirect_uris": ["http://127.0.0.1/callback"]}, authorization="")
    made = server.call("POST", "/api-keys", {"name": "limited", "scope": "sending", "policy": {"sends_per_day": 9}})
    email = {"from": f"Ada <ada@{DOMAIN}>", "to": ["grace@example.net"], "subject": "Once", "text": "Hello"}
    server.call("POST", "/emails", email, authorization=f"Bearer {made['secret']}", idempotency_key="once")
    server.admin("destination", "suspend", "--to", "slow.example")


def totals_of(run):
    words = []
    for currency, cents in run["totals"].items():
        words.append(f"--total={currency}={cents}")
    return words


def pay(server, token):
    """Reports a paid invoice as the payment processor does."""
    at = int(server.now().timestamp()) - 1  # the server's clock is behind by the fraction of a second
    invoice = {
        "id": f"in_{token}", "object": "invoice", "customer": f"cus_{token}", "customer_email": f"customer-of-{token}@example.net",
        "currency": "usd", "status": "paid", "created": at, "status_transitions": {"paid_at": at}, "metadata": {},
        "lines": {"object": "list", "has_more": False, "data": [
            {"id": f"il_{token}", "object": "line_item", "amount": 10_000, "currency": "usd", "description": "Team"}]},
        "total": 10_000, "total_excluding_tax": 10_000, "amount_paid": 10_000, "total_taxes": [],
    }
    event = {"id": f"evt_{token}", "object": "event", "type": "invoice.paid", "created": at, "livemode": False, "data": {"object": invoice}}
    shown = server.admin("affiliate", "show")
    path = "/" + shown["processor"]["webhook_url"].split("/", 3)[3]
    body = json.dumps(event)
    tag = hmac.new(PROCESSOR_SECRET.encode(), f"{at}.{body}".encode(), hashlib.sha256).hexdigest()
    status, _, text = server.request("POST", path, body, stripe_signature=f"t={at},v1={tag}", content_type="application/json")
    if status != 200:
        raise SystemExit(f"the processor's event was answered {status}: {text}")


def is_quiet(server):
    """Returns whether nothing is about to change: mail is final, or scheduled, or deferred; webhooks are delivered."""
    emails = server.call("GET", "/emails?limit=100")["emails"]
    moving = [e for e in emails if e["status"] in ("queued", "sent") and e["last_event"] != "email.delivery_delayed"]
    webhooks = server.call("GET", "/webhooks?limit=100")["webhooks"]
    pending = [w["id"] for w in webhooks if any(d["status"] == "pending" for d in
               server.call("GET", f"/webhooks/{w['id']}/deliveries?limit=100")["deliveries"])]
    unchecked = [d for d in server.call("GET", "/domains?limit=100")["domains"] if not d["last_checked_at"] and d["status"] != "verified"]
    return not moving and not pending and not unchecked


# Reading.


class Reader:
    """Reads every object of a store by the GET operations of the API."""

    def __init__(self, server):
        operations = json.loads((SDK / "operations.json").read_text())["operations"]
        self.operations = [operation for operation in operations if operation["http_method"] == "GET"]
        self.examples = json.loads((SDK / "examples.json").read_text())
        self.server, self.answers, self.read = server, {}, set()

    def read_all(self):
        for operation in sorted(self.operations, key=lambda operation: operation["path"].count("{")):
            for path in self.paths(operation["path"]):
                self.fetch(operation["id"], path + self.query(operation["id"]))
        return self.answers

    def paths(self, template):
        """The paths of all objects that a template names."""
        parameter = PARAMETER.search(template)
        if not parameter:
            return [template]
        found = []
        for listed in self.paths_of_list(template[: parameter.start() - 1]):
            found += self.paths(template.replace(template[: parameter.end()], listed, 1))
        return found

    def paths_of_list(self, path):
        answer = self.answers.get(path)
        if answer is None:
            status, _, text = self.server.request("GET", path.removesuffix("/attachments"))
            answer = json.loads(text) if status == 200 else {}
        if path.endswith("/attachments"):
            answer = next(iter(answer.values()), {})
            answer = {"attachments": answer.get("attachments", [])}
        items = next((value for value in answer.values() if isinstance(value, list)), [])
        return [f"{path}/{urllib.parse.quote(str(name_of(item)))}" for item in items[:ITEMS_MAX]]

    def query(self, operation):
        params = self.examples.get(operation, {}).get("params", {})
        if not any(name in params for name in ("steps", "name", "from")):
            return ""
        week_before = (WRITTEN_AT - datetime.timedelta(days=7)).strftime("%Y-%m-%dT%H:%M:%SZ")
        pairs = {name: (",".join(value) if isinstance(value, list) else str(value)).replace("{{week_ago}}", week_before)
                 for name, value in params.items()}
        pairs.setdefault("to", "2036-01-03T00:00:00Z")
        return "?" + urllib.parse.urlencode(pairs)

    def fetch(self, operation, path):
        status, media_type, text = self.server.request("GET", path)
        if status != 200:
            if operation not in UNREAD:
                raise SystemExit(f"{operation}: GET {path}: {status} {text[:300]}")
            return
        self.read.add(operation)
        if operation in GROWING:
            self.answers[path] = {"logs": [{"id": log["id"]} for log in json.loads(text)["logs"]]}
        else:
            self.answers[path] = json.loads(text) if media_type == "application/json" else {"sha256": hashlib.sha256(text).hexdigest()}

    def unread(self):
        return {operation["id"] for operation in self.operations} - self.read - UNREAD


def name_of(item):
    """The name of an item of a list in the paths of its details."""
    return next(item[name] for name in ("id", "email_id", "number", "provider") if name in item)


def differences(recorded, found, where):
    """What was recorded and is not there; fields may be added."""
    if isinstance(recorded, dict) and isinstance(found, dict):
        for name, value in recorded.items():
            if name in VOLATILE:
                continue
            if name not in found:
                yield f"{where}.{name} is missing"
            else:
                yield from differences(value, found[name], f"{where}.{name}")
    elif isinstance(recorded, list) and isinstance(found, list):
        if len(recorded) != len(found):
            yield f"{where} has {len(found)} entries, not {len(recorded)}"
        for place, (one, other) in enumerate(zip(recorded, found)):
            yield from differences(one, other, f"{where}[{place}]")
    elif recorded != found:
        yield f"{where} is {str(found)[:100]!r}, not {str(recorded)[:100]!r}"


# Files.


def pack(directory, about):
    """The files of a data directory and what is known about it, as a compressed archive."""
    contents = {ABOUT: json.dumps(about, ensure_ascii=False, sort_keys=True).encode()}
    for path in sorted(path for path in directory.rglob("*") if path.is_file() and path.name not in FILES_LEFT_OUT):
        contents[f"data/{path.relative_to(directory)}"] = path.read_bytes()
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, content in contents.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(content), 0o600
            archive.addfile(member, io.BytesIO(content))
    return lzma.compress(out.getvalue(), preset=9 | lzma.PRESET_EXTREME)


def unpack(file, directory):
    """Unpacks a store below a directory. Returns what is known about it."""
    with tarfile.open(file, "r:xz") as archive:
        for member in archive.getmembers():
            path = directory / member.name
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.write_bytes(archive.extractfile(member).read())
            path.chmod(0o600)
    return json.loads((directory / ABOUT).read_text())


def write(binary, version, replace):
    file = HERE / f"store-{version}.tar.xz"
    if file.exists() and not replace:
        raise SystemExit(f"{file} exists: the store of a release is never written again")
    with tempfile.TemporaryDirectory(prefix="postrider-earlier-") as name:
        server = Server(binary, Directory(name), WRITTEN_AT).start()
        fill(server)
        # All domains are checked, and the next check is far.
        server.admin("clock", "advance", "3600")
        until(lambda: is_quiet(server), "the end of the work", 60)
        server.stop()
        kept = Path(name) / "kept"
        shutil.copytree(Path(name) / "data", kept)
        server.start()
        reader = Reader(server)
        recorded = reader.read_all()
        if missing := reader.unread():
            raise SystemExit(f"no object was read by {', '.join(sorted(missing))}")
        server.stop()
        file.write_bytes(pack(kept, {"version": version, "api_key": server.api_key, "answers": recorded}))
    print(f"{file.relative_to(ROOT)}: {len(recorded)} answers, {file.stat().st_size} bytes")


class Directory:
    """A directory with its name as the harness expects it."""

    def __init__(self, name):
        self.name = name


def check(binary, file):
    """Reads a store with a program. Returns the differences."""
    with tempfile.TemporaryDirectory(prefix="postrider-earlier-") as name:
        store = unpack(file, Path(name))
        server = Server(binary, Directory(name), WRITTEN_AT + datetime.timedelta(minutes=2))
        server.api_key = store["api_key"]
        server.start()
        found = []
        for path, recorded in store["answers"].items():
            status, media_type, text = server.request("GET", path)
            if status != 200:
                found.append(f"GET {path}: {status} {text[:200]}")
                continue
            if list(recorded) == ["logs"]:
                continue
            answer = json.loads(text) if media_type == "application/json" else {"sha256": hashlib.sha256(text).hexdigest()}
            found += differences(recorded, answer, f"GET {path} ")
        found += continue_work(server)
        server.stop()
        return found, len(store["answers"])


def continue_work(server):
    """What waits in the store happens after its time."""
    server.admin("clock", "advance", str(40 * 86400))

    def waiting():
        return [e for e in server.call("GET", "/emails?limit=100")["emails"] if e["status"] in ("scheduled", "queued")]

    def automation_mail():
        return len([e for e in server.call("GET", "/emails?limit=100")["emails"] if e["subject"] == "After a day"]) == 2

    for what, is_done in (("scheduled mail", lambda: not waiting()), ("the mail of the automation", automation_mail)):
        try:
            until(is_done, what, 60)
        except SystemExit:
            yield f"{what} does not continue: {waiting()}"
    for words in (("store", "check"), ("affiliate", "audit", "--account", OWNER)):
        try:
            server.admin(*words)
        except SystemExit as failure:
            yield str(failure)


def main():
    parser = argparse.ArgumentParser(description="Write and read stores of released versions.")
    parser.add_argument("action", choices=["write", "check"])
    parser.add_argument("--postrider", required=True, help="the server's binary")
    parser.add_argument("--replace", action="store_true", help="write the store of a version that is not released again")
    parser.add_argument("words", nargs="*", help="the version to write, or words in the names of stores to check")
    args = parser.parse_intermixed_args()
    binary = str(Path(args.postrider).resolve())
    if args.action == "write":
        if len(args.words) != 1:
            parser.error("name the version")
        return write(binary, args.words[0], args.replace)
    failed = False
    # tests/stories/earlier_store.rs reads store-1.json.gz, which is older.
    for file in sorted(HERE.glob("store-*.tar.xz")):
        if not all(word in file.name for word in args.words):
            continue
        began = time.monotonic()
        found, count = check(binary, file)
        for difference in found[:40]:
            print(f"!! {difference}")
        failed |= bool(found)
        print(f"{file.name}: {count} answers, {len(found)} differences, {time.monotonic() - began:.1f} s")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
