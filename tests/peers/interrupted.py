"""Transfers and a backfill that are interrupted by killing the server (-9).

Both are checks of localstripe.py with the simulated processor of processor.py: localstripe has no transfers.
"""

import collections
import time

from processor import BUSY, LOST, SILENT, Processor, connected
from program import PARTNERS, Program, expect, wait_for_value
from receiving import call

DAY = 86_400
CUSTOMERS, INVOICES = 40, 240


class Payouts:
    """A program whose partners are paid by a simulated processor."""

    def __init__(self, program, processor):
        self.program, self.processor, self.server = program, processor, program.server
        self.first = {}

    def advance(self, seconds):
        self.program.shift = self.server.admin("clock", "advance", str(seconds))["offset_s"]

    def ready(self):
        """Every partner has sales. One account accepts transfers at once; the others report it later by an event."""
        self.program.connect(self.processor)
        expect("the test", True, self.program.admin("processor", "test")["ok"])
        self.processor.accepts_transfers["acct_dora"] = True
        for number, (name, partner) in enumerate(self.program.partners.items()):
            self.program.record_sale(name, 10_000 + number)
            state = self.program.admin("partner", "payout-method", partner, "stripe", f"acct_{name}")["affiliate"]
            expect(f"{name} is ready", name == "dora", state["payout_ready"])
            self.program.process_event("account.updated", connected(f"acct_{name}", True))
            state = self.program.api("GET", f"/affiliates/{partner}")["affiliate"]
            expect(f"{name} is ready", True, state["payout_ready"])

    def drafted(self):
        self.advance(31 * DAY)
        # The open inquiry extends the hold of its line.
        wait_for_value("lines that are held", 1, lambda: len(self.lines("pending")))
        draft = self.program.admin("run", "draft")
        earned = sum(line["amount_cents"] for line in self.lines("earned"))
        expect("the totals", {"usd": earned}, draft["run"]["totals"])
        self.program.process_event("charge.dispute.closed", self.inquiry() | {"status": "warning_closed"})
        return draft

    def inquiry(self):
        return next(one for one in self.processor.objects["disputes"] if one["status"].startswith("warning"))

    def lines(self, status):
        return [line for line in self.program.all("/affiliate-commissions") if line["status"] == status]

    def approved(self, draft):
        run = draft["run"]
        totals = [f"--total={currency}={amount}" for currency, amount in run["totals"].items()]
        self.program.admin("run", "approve", run["id"], "--rev", str(run["rev"]), *totals)
        names = {partner: name for name, partner in self.program.partners.items()}
        return {names[payout["affiliate_id"]]: payout["id"] for payout in draft["payouts"]}

    def statuses(self, payouts):
        state = {one["id"]: one["status"] for one in self.program.all("/affiliate-payouts")}
        return {name: state[payout] for name, payout in payouts.items()}

    def has_obstacle(self, payout):
        return any(one["id"] == payout and one["failure_reason"] for one in self.program.all("/affiliate-payouts"))

    def killed(self):
        """Transfers for Ada and Eve are made without a response; Dora's request is lost; the others are refused."""
        moods = {"ada": [SILENT], "dora": [LOST], "eve": [SILENT, BUSY]}
        moods |= {"bob": ["account_invalid"], "cleo": ["balance_insufficient"]}
        self.processor.outcomes |= {f"acct_{name}": collections.deque(responses) for name, responses in moods.items()}
        self.first = self.approved(self.drafted())
        wait_for_value("transfers that are not answered", 3, lambda: self.processor.waiting)
        expected = dict.fromkeys(PARTNERS, "processing") | {"bob": "failed"}
        wait_for_value("the payouts", expected, lambda: self.statuses(self.first))
        # Killed before the refusal is on record, the server would rightly repeat the request with the same key.
        wait_for_value("the refusal of Cleo's transfer", True, lambda: self.has_obstacle(self.first["cleo"]))
        self.server.kill()
        self.processor.drop_delayed()
        self.server.start()
        self.advance(31)
        expected |= {"ada": "paid", "dora": "paid"}
        wait_for_value("the payouts", expected, lambda: self.statuses(self.first))

    def check_later_lookup(self):
        """The idempotency keys have expired: Eve's transfer is found in the list. Cleo is paid a day later."""
        self.advance(21 * 3600)
        expected = dict.fromkeys(PARTNERS, "paid") | {"bob": "failed", "cleo": "processing"}
        wait_for_value("the payouts", expected, lambda: self.statuses(self.first))
        self.advance(4 * 3600)
        wait_for_value("the payouts", expected | {"cleo": "paid"}, lambda: self.statuses(self.first))
        keys = {f"{payout}:1" for payout in self.first.values()} | {f"{self.first['cleo']}:2"}
        expect("keys", keys, set(self.processor.keys))
        self.settled()

    def check_reversal(self):
        """Ada's transfer is reversed; Ada and Bob are paid by the next run with new keys."""
        transfer = self.made()[self.first["ada"]]
        self.program.process_event("transfer.reversed", transfer | {"amount_reversed": transfer["amount"], "reversed": True})
        expect("Ada's payout", "failed", self.statuses(self.first)["ada"])
        self.processor.transfers.remove(transfer)
        second = self.approved(self.program.admin("run", "draft"))
        wait_for_value("the payouts", {"ada": "paid", "bob": "paid"}, lambda: self.statuses(second))
        self.settled()

    def made(self):
        return {one["metadata"]["payout_id"]: one for one in self.processor.transfers}

    def settled(self):
        """The transfers at the processor equal the payouts that are marked paid."""
        paid = {one["id"]: one["amount_cents"] for one in self.program.all("/affiliate-payouts") if one["status"] == "paid"}
        expect("transfers made", len(self.processor.transfers), len(self.made()))
        expect("what was made", paid, {payout: one["amount"] for payout, one in self.made().items()})
        expect("lines that are paid", sum(paid.values()), sum(line["amount_cents"] for line in self.lines("paid")))
        expect("keys used again after a refusal", [], self.processor.misused)


class InterruptedBackfill:
    """A program with many referrals, and a month of payments at its processor."""

    def __init__(self, server):
        self.server, self.processor = server, Processor()
        self.program = Program(server, "many", self.processor)
        self.emails = [f"customer{number}@many.example" for number in range(CUSTOMERS)]
        for email in self.emails:
            self.program.add_referral(email)
        self.since = int(time.time()) + 1
        for number, email in enumerate(self.emails):
            customer = {"id": f"cus_{number}", "object": "customer", "email": email, "metadata": {}}
            self.processor.customers[customer["id"]] = customer
        for number in range(INVOICES):
            self.happen(number)

    def happen(self, number):
        """A customer pays an invoice; half of every seventh one is refunded."""
        customer, at = number * CUSTOMERS // INVOICES, self.since + number * (28 * DAY // INVOICES)
        amount = 1000 + number
        invoice = {"id": f"in_{number}", "object": "invoice", "customer": f"cus_{customer}", "status": "paid"}
        invoice |= {"currency": "usd", "total": amount, "total_excluding_tax": amount, "amount_paid": amount, "created": at}
        invoice |= {"status_transitions": {"paid_at": at}, "charge": f"ch_{number}", "payment_intent": f"pi_{number}"}
        self.processor.objects["invoices"].append(invoice | {"customer_email": self.emails[customer]})
        charge = {"id": f"ch_{number}", "object": "charge", "payment_intent": f"pi_{number}", "created": at}
        refunded = amount // 2 if number % 7 == 0 else 0
        charge |= {"amount": amount, "amount_refunded": refunded, "currency": "usd", "customer": f"cus_{customer}"}
        self.processor.objects["charges"].append(charge)

    def expected(self):
        """Expected commissions in cents: 20 % of the remaining amount, rounded half up."""
        left = [1000 + number - ((1000 + number) // 2 if number % 7 == 0 else 0) for number in range(INVOICES)]
        return sorted((2000 * amount + 5000) // 10_000 for amount in left)

    def backfill(self, body):
        """Starts a backfill and returns a function that reads its state; the admin command would wait for the end."""
        signed = self.server.admin("session", "create", "--account", self.program.owner)
        headers = {"cookie": signed["cookie"], "x_csrf_token": signed["csrf_token"]}
        path = "/dashboard/api/affiliate-program/backfill"
        status, answer = call(self.server.port, None, "POST", path, body, **headers)
        expect("the answer", 202, status)
        path += "/" + answer["backfill"]["id"]
        return lambda: call(self.server.port, None, "GET", path, **headers)[1]["backfill"]

    def read(self):
        self.processor.delay_request(lambda path, number: path.startswith("/v1/customers/") and number == CUSTOMERS // 2)
        state = self.backfill({"since": self.since})
        wait_for_value("the question at which it is killed", 1, lambda: self.processor.waiting)
        self.server.kill()
        self.processor.drop_delayed()
        self.server.start()
        wait_for_value("the end of it", "done", lambda: state()["status"])
        expect("invoices seen", INVOICES, state()["invoices_seen"])
        expect("lines", self.expected(), sorted(line["amount_cents"] for line in self.program.all("/affiliate-commissions")))
        # The count includes lines written before the kill.
        expect("lines that it says it wrote", INVOICES, state()["lines_written"])
