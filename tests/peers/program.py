"""A live affiliate program of its own account, as seen by its owner, its server and its processor; and polling."""

import collections
import hashlib
import hmac
import json
import time

from check import Failed
from receiving import call

SECRETS = ["whsec_of_before_0123456789", "whsec_of_after_0123456789"]
CAMPAIGN = {
    "name": "Partners",
    "commission_bps": 2000,
    "hold_days": 30,
    "product_rates": [{"product_id": "prod_course", "commission_type": "percent", "commission_bps": 5000}],
}
PARTNERS = ("ada", "bob", "cleo", "dora", "eve")
PATIENCE_S = 120


def expect(what, expected, found):
    if expected != found:
        raise Failed(f"{what}: {found!r} instead of {expected!r}")


def wait_for_value(what, expected, find):
    """Waits until `find` returns the wanted value."""
    deadline = time.monotonic() + PATIENCE_S
    while (found := find()) != expected:
        if time.monotonic() > deadline:
            raise Failed(f"{what}: {found!r} instead of {expected!r} after {PATIENCE_S} s")
        time.sleep(0.02)


def next_second():
    """The processor's timestamps are in seconds: events within one second have no order."""
    now = int(time.time())
    wait_for_value("the next second", True, lambda: time.time() >= now + 1)


class Program:
    """A live program of its own account, with its partners."""

    def __init__(self, server, name, processor=None):
        self.server, self.owner, self.shift = server, f"owner@{name}.example", 0
        created = server.admin("account", "create", "--email", self.owner, "--plan", "dedicated", "--production")
        self.key = created["api_key"]["secret"]
        self.admin("enable", "--website", f"https://{name}.example", "--currency", "usd", "--mode", "test")
        self.admin("set", "velocity_per_hour=100000")
        self.connect(processor)
        self.admin("campaign", "default", json.dumps(CAMPAIGN))
        self.admin("go-live")
        self.partners = {name: self.partner(name) for name in PARTNERS}

    def connect(self, processor):
        more = ["--api-base", processor.url, "--key", "rk_test_1"] if processor else []
        connect = ["processor", "connect", "--webhook-secret", SECRETS[0], "--webhook-secret", SECRETS[1], *more]
        self.hook = self.admin(*connect)["processor"]["webhook_url"].split("/", 3)[3]

    def admin(self, *words):
        return self.server.admin("affiliate", "--account", self.owner, *words)

    def api(self, method, path, body=None):
        status, answer = call(self.server.port, self.key, method, path, body)
        if status not in (200, 201):
            raise Failed(f"{method} {path}: {status} {answer}")
        return answer

    def all(self, path):
        found, cursor = [], ""
        while True:
            page = self.api("GET", f"{path}?limit=100{cursor}")
            found += page["data"]
            if not page["has_more"]:
                return found
            cursor = f"&cursor={page['next_cursor']}"

    def partner(self, name):
        body = {"email": f"{name}@partners.example", "token": name, "send_invite": False}
        return self.api("POST", "/affiliates", body)["affiliate"]["id"]

    def add_referral(self, email, partner="ada", customer=None):
        body = {"token": partner, "email": email} | ({"processor_customer_id": customer} if customer else {})
        return self.api("POST", "/affiliate-referrals", body)["referral"]["id"]

    def record_sale(self, partner, cents):
        """A customer of a partner pays."""
        email, at = f"{partner}s@customers.example", int(time.time() + self.shift)
        self.add_referral(email, partner)
        invoice = {"id": f"in_{partner}", "object": "invoice", "customer_email": email, "currency": "usd", "status": "paid"}
        invoice |= {"total": cents, "amount_paid": cents, "status_transitions": {"paid_at": at + 1}}
        self.process_event("invoice.paid", invoice)

    def send_event(self, kind, thing, name=None):
        """Sends an event of the processor. Returns status and body."""
        at = int(time.time() + self.shift)
        event = {"id": name or f"evt_{time.time_ns()}", "type": kind, "created": at, "livemode": False}
        return self.deliver(event | {"data": {"object": thing}})

    def deliver(self, event):
        at = int(time.time() + self.shift)
        tag = hmac.new(SECRETS[0].encode(), f"{at}.{json.dumps(event)}".encode(), hashlib.sha256).hexdigest()
        return call(self.server.port, None, "POST", f"/{self.hook}", event, stripe_signature=f"t={at},v1={tag}")

    def process_event(self, kind, thing):
        expect(f"the response to {kind}", (200, "done"), status_and_result(self.send_event(kind, thing)))

    def ledger_lines(self):
        """Each customer's status and lines: earned amount, sale amount, and whether it was reversed."""
        lines = collections.defaultdict(list)
        for line in self.all("/affiliate-commissions"):
            word = "reversed" if line["status"] == "reversed" else "stands"
            lines[line["referral_id"]].append((line["amount_cents"], line["sale_amount_cents"], word))
        referrals = self.all("/affiliate-referrals")
        return {one["email"]: (one["status"], sorted(lines[one["id"]])) for one in referrals}

    def list_events(self):
        """The processor's events, as the owner sees them."""
        found, cursor = [], []
        while True:
            page = self.admin("processor", "events", "--limit", "100", *cursor)
            found += page["data"]
            if not page["has_more"]:
                return found
            cursor = ["--cursor", page["next_cursor"]]

    def audit(self):
        expect("the audit", [], self.admin("audit")["broken"])


def status_and_result(answer):
    return answer[0], answer[1].get("status")
