#!/usr/bin/env python3
"""localstripe as the payment processor of an affiliate program, and a simulated processor for what it lacks.

    tests/peers/localstripe.py --postrider target/debug/postrider

Flow: localstripe is fetched from PyPI into target/peers once (all is skipped with a note if that fails) and started
with three webhooks to the program of one account: signed with its secret, with its next secret, and with a wrong one.
Customers buy in different ways; the events that localstripe sends must lead to the lines in STORIES. Events that it
does not send (checkouts, refunds, disputes, credit notes, trials) are sent by the test about localstripe's objects.
Then
  - a program of another account, which received no event, reads the same past by a backfill and must have the same
    lines;
  - partners are paid by transfers of a simulated processor, and the server is killed (-9) between request and response;
  - a backfill of some hundred invoices is killed in the middle and continues.
After each step the audit must be clean. No traffic leaves loopback except pip's.

localstripe has no GET /v1/account, checkout sessions, disputes, accounts or transfers, and its lists refuse `created`
and `status`. Therefore a key is connected, and the past is read, through processor.py, which adds these.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.dont_write_bytecode = True
from check import NODE_CACHE, Failed, Skip, report_case  # noqa: E402
from openapi import environment  # noqa: E402
from processor import Processor, call_api  # noqa: E402
from program import SECRETS, Program, expect, next_second, status_and_result, wait_for_value  # noqa: E402
from receiving import free_port  # noqa: E402  (sets the path to the drills)
from events import Server  # noqa: E402
from nodes import Sink  # noqa: E402
from interrupted import INVOICES, InterruptedBackfill, Payouts  # noqa: E402

HOME = NODE_CACHE / "localstripe"
PACKAGES = ["localstripe==1.15.10", "aiohttp==3.14.5"]
# Like localstripe's own main program, but on loopback only and without its file in /tmp.
SERVE = """
import logging, sys
from aiohttp import web
from localstripe.resources import Store
from localstripe.server import app
Store.dump_to_disk = lambda store: None
logging.basicConfig(level=logging.INFO)
web.run_app(app, host="127.0.0.1", port=int(sys.argv[1]), print=None)
"""
PLANS = {"pro": (3000, "month", "prod_mail"), "yearly": (30_000, "year", "prod_mail"), "course": (3000, "month", "prod_course")}
GOOD_CARD, BAD_CARD = "4242424242424242", "4000000000000341"


class LocalStripe:
    """A localstripe with some plans, and the actions of a shop."""

    def __init__(self, programs, base, hook):
        self.port, self.log = free_port(), base / "localstripe.log"
        with self.log.open("wb") as log:
            command = [str(programs / "python"), "-c", SERVE, str(self.port)]
            self.process = subprocess.Popen(command, stdout=log, stderr=log, cwd=base)
        wait_for_value("localstripe", True, self.answers)
        for name, secret in {"before": SECRETS[0], "after": SECRETS[1], "wrong": "whsec_wrong"}.items():
            self.call_api("POST", f"/_config/webhooks/{name}", {"url": hook, "secret": secret})
        for name in ("prod_mail", "prod_course"):
            self.post("products", id=name, name=name)
        for name, (amount, interval, product) in PLANS.items():
            self.post("plans", id=name, amount=amount, currency="usd", interval=interval, product=product)

    def answers(self):
        if self.process.poll() is not None:
            raise Failed(f"localstripe ended: {self.log.read_text(errors='replace')[-1500:]}")
        try:
            return call_api(self.port, "GET", "/v1/plans")[0] == 200
        except OSError:
            return False

    def call_api(self, method, target, body=None):
        status, value = call_api(self.port, method, target, body)
        if status != 200:
            raise Failed(f"localstripe: {method} {target}: {status} {str(value)[:300]}")
        return status, value

    def get(self, path):
        return self.call_api("GET", f"/v1/{path}")[1]

    def post(self, path, **fields):
        return self.call_api("POST", f"/v1/{path}", fields)[1]

    def customer(self, email, card=GOOD_CARD, **more):
        if card.isdigit():
            details = {"type": "card", "card": {"number": card, "exp_month": 12, "exp_year": 2040, "cvc": "123"}}
        else:
            details = {"type": "sepa_debit", "sepa_debit": {"iban": card}}
        method = self.post("payment_methods", **details)["id"]
        settings = {"default_payment_method": method}
        return self.post("customers", email=email, payment_method=method, invoice_settings=settings, **more)["id"]

    def subscribe(self, customer, plan="pro", **more):
        return self.post("subscriptions", customer=customer, items=[{"plan": plan}], **more)["id"]

    def bill(self, customer, subscription):
        """Pays the next invoice of a subscription and returns it."""
        invoice = self.post("invoices", customer=customer, subscription=subscription)["id"]
        return self.call_api("POST", f"/v1/invoices/{invoice}/pay")[1]

    def events(self):
        return self.get("events?limit=1000")["data"]

    def invoices(self):
        return self.get("invoices?limit=1000")["data"]

# Actions of localstripe's customers. Each returns the expected status of the referral, and (earned, of the sale)


class Shop:
    """A shop that sells with localstripe and whose customers are referred in two programs alike."""

    def __init__(self, local, programs):
        self.local, self.programs = local, programs

    def brought(self, email, customer=None):
        """The customer's referral in the first program."""
        return [program.add_referral(email, customer=customer) for program in self.programs][0]


def named_by_metadata(shop, email):
    customer = shop.local.customer(email, metadata={"stx_referral": shop.brought(email)})
    shop.local.subscribe(customer)
    return "active", [(600, 3000)]


def found_by_address(shop, email):
    shop.brought(email)
    shop.local.subscribe(shop.local.customer(email.upper()))
    return "active", [(600, 3000)]


def renewed(shop, email):
    shop.brought(email)
    customer = shop.local.customer(email)
    subscription = shop.local.subscribe(customer)
    shop.local.bill(customer, subscription)
    return "active", [(600, 3000), (600, 3000)]


def subscribed_twice(shop, email):
    shop.brought(email)
    customer = shop.local.customer(email)
    shop.local.subscribe(customer)
    shop.local.subscribe(customer, "course")
    return "active", [(600, 3000), (1500, 3000)]


def took_more_seats(shop, email):
    # The invoice credits the first seat and charges three.
    customer = shop.local.customer(email)
    shop.brought(email, customer=customer)
    subscription = shop.local.subscribe(customer)
    shop.local.post(f"subscriptions/{subscription}", items=[{"plan": "pro", "quantity": 3}])
    shop.local.bill(customer, subscription)
    return "active", [(600, 3000), (1200, 6000)]


def went_from_month_to_year(shop, email):
    shop.brought(email)
    customer = shop.local.customer(email)
    subscription = shop.local.subscribe(customer)
    shop.local.post(f"subscriptions/{subscription}", items=[{"plan": "yearly"}])
    return "active", [(600, 3000), (5400, 27_000)]


def paid_tax(shop, email):
    shop.brought(email)
    rate = shop.local.post("tax_rates", display_name="VAT", percentage=20, inclusive=False)["id"]
    shop.local.subscribe(shop.local.customer(email), default_tax_rates=[rate])
    return "active", [(600, 3000)]


def had_a_credit(shop, email):
    shop.brought(email)
    shop.local.subscribe(shop.local.customer(email, balance=-1000))
    return "active", [(400, 2000)]


def paid_by_debit(shop, email):
    # The payment succeeds half a second later.
    shop.brought(email)
    shop.local.subscribe(shop.local.customer(email, card="DE89370400440532013000"))
    return "active", [(600, 3000)]


def was_declined(shop, email):
    shop.brought(email)
    shop.local.subscribe(shop.local.customer(email, card=BAD_CARD))
    return "lead", []


def is_excluded(shop, email):
    # The customer's event arrives before the first invoice, so that no commission is written and reversed.
    shop.brought(email)
    customer = shop.local.customer(email, metadata={"stx": "False"})
    made = next(event["id"] for event in shop.local.events() if event["data"]["object"]["id"] == customer)
    wait_for_value("the customer's event", True, lambda: made in {event["id"] for event in shop.programs[0].list_events()})
    shop.local.subscribe(customer)
    return "active", []


def left(shop, email):
    shop.brought(email)
    subscription = shop.local.subscribe(shop.local.customer(email))
    shop.local.call_api("DELETE", f"/v1/subscriptions/{subscription}")
    return "cancelled", [(600, 3000)]


def will_be_known_by_a_checkout(shop, email):
    shop.brought(email)
    shop.local.subscribe(shop.local.customer("other." + email))
    return "lead", []


def nobody_brought(shop, email):
    shop.local.subscribe(shop.local.customer(email))
    return None, None


STORIES = [
    named_by_metadata, found_by_address, renewed, subscribed_twice, took_more_seats, went_from_month_to_year, paid_tax,
    had_a_credit, paid_by_debit, was_declined, is_excluded, left, will_be_known_by_a_checkout, nobody_brought,
]  # fmt: skip


def address(story):
    return story.__name__.replace("_", "-") + "@customers.example"


class ReceivedEvents:
    """The events that localstripe sent to the first program, compared with the stories."""

    def __init__(self, local, programs):
        self.local, self.program = local, programs[0]
        shop = Shop(local, programs)
        self.expected = {story: story(shop, address(story)) for story in STORIES}

    def check_arrivals(self):
        """Each event arrived twice with a valid signature and once with an invalid one."""
        events = {event["id"] for event in self.local.events()}

        def unanswered():
            log, sent = self.local.log.read_text(), len(self.local.events())
            taken, refused = log.count("successfully delivered"), log.count("failed with response code 400")
            return 2 * sent - taken, sent - refused

        wait_for_value("webhooks still to be accepted, and to be refused", (0, 0), unanswered)
        expect("other responses", 0, self.local.log.read_text().count("failed with response code 5"))
        heard = self.program.list_events()
        expect("events that are not stored", set(), events - {event["id"] for event in heard})
        expect("events that failed", [], [event for event in heard if event["status"] == "failed"])

    def check_story(self, story):
        status, lines = self.expected[story]
        found = self.program.ledger_lines().get(address(story), (None, None))
        expected = (status, lines and sorted((*line, "stands") for line in lines) or lines)
        expect("status and lines", expected, found)

    def resend_events(self):
        """Sends all events again in another order, and replays one by command."""
        before, events = self.program.ledger_lines(), self.local.events()
        random.Random(1).shuffle(events)
        for event in events:
            expect(f"{event['type']} again", (200, "duplicate"), status_and_result(self.program.deliver(event)))
        self.program.admin("processor", "replay", events[0]["id"])
        expect("lines", before, self.program.ledger_lines())

    def check_replay(self):
        """An unreadable invoice fails, is listed, fails again on replay, and is processed once it is readable."""
        invoice = self.local.invoices()[0]
        broken = invoice | {"amount_paid": "much"}
        expect("its answer", 500, self.program.send_event("invoice.paid", broken, "evt_broken")[0])
        failed = self.program.admin("processor", "events", "--status", "failed")["data"]
        expect("failed events", ["evt_broken"], [event["id"] for event in failed])
        again = self.program.admin("processor", "replay", "evt_broken")["event"]
        expect("the event", ("failed", 2), (again["status"], again["attempts"]))
        expect("its answer", (200, "done"), status_and_result(self.program.send_event("invoice.paid", invoice, "evt_broken")))
        expect("failed events", [], self.program.admin("processor", "events", "--status", "failed")["data"])


# Events that localstripe does not send, and features that it lacks


class SimulatedEvents:
    """Checkouts, refunds, disputes, credit notes and trials about payments of localstripe's customers."""

    def __init__(self, local, programs, processor):
        self.local, self.programs, self.program, self.processor = local, programs, programs[0], processor

    def invoice(self, email):
        return [one for one in self.local.invoices() if one["customer_email"].lower() == email][-1]

    def expect_lines(self, what, story, *expected):
        expect(what, expected, self.program.ledger_lines()[address(story)])

    def checkout(self):
        """A checkout names the referral; an earlier invoice is then attributed to it."""
        email = address(will_be_known_by_a_checkout)
        session = {"id": "cs_1", "object": "checkout.session", "status": "complete", "payment_status": "paid"}
        session |= {"customer": self.invoice("other." + email)["customer"], "created": int(time.time())}
        session |= {"amount_total": 3000, "currency": "usd"}
        of = [session | {"client_reference_id": program.add_referral(email)} for program in self.programs]
        self.program.process_event("checkout.session.completed", of[0])
        self.processor.objects["checkout/sessions"].append(of[1])
        self.expect_lines("with it", will_be_known_by_a_checkout, "active", [(600, 3000, "stands")])

    def refunds(self):
        charge = self.invoice(address(found_by_address))["charge"]["id"]
        for status, left in (("active", (300, 1500, "stands")), ("refunded", (300, 1500, "reversed"))):
            next_second()
            self.refund = self.local.post("refunds", charge=charge, amount=1500)
            self.program.process_event("charge.refunded", self.local.get(f"charges/{charge}"))
            self.expect_lines("after a refund", found_by_address, status, [left])

    def refund_that_failed(self):
        self.program.process_event("refund.failed", self.refund | {"status": "failed"})
        self.expect_lines("after it failed", found_by_address, "active", [(300, 1500, "stands")])

    def dispute(self, story, kind, status):
        dispute = {"id": f"dp_{story.__name__}", "object": "dispute", "status": status, "created": int(time.time())}
        dispute["charge"] = self.invoice(address(story))["charge"]["id"]
        known = self.processor.objects["disputes"]
        known[:] = [one for one in known if one["id"] != dispute["id"]] + [dispute]
        self.program.process_event(f"charge.dispute.{kind}", dispute)

    def disputes(self):
        self.dispute(paid_tax, "created", "warning_needs_response")
        self.expect_lines("an inquiry", paid_tax, "active", [(600, 3000, "stands")])
        self.dispute(had_a_credit, "created", "needs_response")
        self.expect_lines("a dispute", had_a_credit, "refunded", [(400, 2000, "reversed")])
        self.dispute(had_a_credit, "closed", "won")
        self.expect_lines("one that was won", had_a_credit, "active", [(400, 2000, "reversed")])

    def credit_notes(self):
        note = {"id": "cn_1", "object": "credit_note", "currency": "usd", "status": "issued", "refunds": []}
        note |= {"invoice": self.invoice(address(paid_by_debit))["id"], "post_payment_amount": 1000}
        self.program.process_event("credit_note.created", note)
        self.expect_lines("with it", paid_by_debit, "active", [(400, 2000, "stands")])
        self.program.process_event("credit_note.voided", note | {"status": "void"})
        self.expect_lines("without it", paid_by_debit, "active", [(600, 3000, "stands")])

    def trial(self):
        """Trials: localstripe supports them but reports them as incomplete."""
        email = "trial@customers.example"
        customer = self.local.customer(email)
        self.program.add_referral(email, customer=customer)
        subscription = self.local.get("subscriptions/" + self.local.subscribe(customer, trial_period_days=14))
        self.program.process_event("customer.subscription.updated", subscription | {"status": "trialing"})
        expect("on trial", ("trialing", []), self.program.ledger_lines()[email])
        next_second()
        self.program.process_event("customer.subscription.updated", subscription | {"status": "canceled"})
        expect("after it", ("cancelled", []), self.program.ledger_lines()[email])

    def later_shape(self):
        """Since 2025 neither invoice nor charge names the other; a third event, here the last one, links them."""
        email = "later@customers.example"
        self.program.add_referral(email, customer="cus_later")
        charge = {"id": "ch_later", "object": "charge", "payment_intent": "pi_later", "currency": "usd"}
        self.program.process_event("charge.refunded", charge | {"amount": 3000, "amount_refunded": 1000})
        invoice = {"id": "in_later", "object": "invoice", "customer": "cus_later", "currency": "usd", "status": "paid"}
        invoice |= {"total": 3600, "total_taxes": [{"amount": 600}], "amount_paid": 3600}
        self.program.process_event("invoice.paid", invoice)
        expect("before", ("active", [(600, 3000, "stands")]), self.program.ledger_lines()[email])
        payment = {"type": "payment_intent", "payment_intent": "pi_later"}
        payment = {"id": "inpay_later", "object": "invoice_payment", "invoice": "in_later", "payment": payment}
        self.program.process_event("invoice_payment.paid", payment)
        expect("after", ("active", [(433, 2167, "stands")]), self.program.ledger_lines()[email])


def read_back(programs, local):
    """The second program, which received no events, reads localstripe's past by a backfill."""
    event_program, backfill_program = programs
    # The backfill does not include the current second.
    next_second()
    done = backfill_program.admin("backfill", "--since", str(int(time.time()) - 3600))["backfill"]
    paid = [one for one in local.invoices() if one["status"] == "paid"]
    expect("the back-fill", ("done", len(paid)), (done["status"], done["invoices_seen"]))
    theirs = event_program.ledger_lines()
    for email, found in backfill_program.ledger_lines().items():
        expect(f"lines of {email}", theirs.pop(email), found)
    expect("missing customers", {}, theirs)


# Running


class Peers:
    """A server with three programs, localstripe, and the simulated processor in front of it."""

    def __init__(self, base):
        self.base, self.local = base, None
        self.server = Server(base / "server", Sink())
        with self.server.config.open("a") as config:
            config.write('[testing]\nclock_offset = "0s"\n')

    def start(self, programs):
        self.server.start()
        self.event_program = Program(self.server, "hearing")
        self.local = LocalStripe(programs, self.base, f"http://127.0.0.1:{self.server.port}/{self.event_program.hook}")
        self.processor = Processor(self.local)
        self.backfill_program = Program(self.server, "reading", self.processor)
        self.interrupted_backfill = InterruptedBackfill(self.server)

    def checks(self):
        both, event_program, local, processor = [self.event_program, self.backfill_program], self.event_program, self.local, self.processor
        received_events = ReceivedEvents(local, both)
        simulated_events, payouts = SimulatedEvents(local, both, processor), Payouts(event_program, processor)
        yield "localstripe: each event processed once", received_events.check_arrivals
        for story in STORIES:
            yield f"localstripe: {story.__name__.replace('_', ' ')}", lambda story=story: received_events.check_story(story)
        yield "localstripe: all events once more", received_events.resend_events
        yield "an event that fails, replayed", received_events.check_replay
        yield "audit after the events", event_program.audit
        yield "a checkout", simulated_events.checkout
        yield "refunds", simulated_events.refunds
        yield "disputes", simulated_events.disputes
        yield "back-fill of localstripe's past", lambda: read_back(both, local)
        yield "audit after the backfill", self.backfill_program.audit
        yield "a refund that failed", simulated_events.refund_that_failed
        yield "credit notes", simulated_events.credit_notes
        yield "a trial", simulated_events.trial
        yield "the shape since 2025", simulated_events.later_shape
        yield "partners' accounts", payouts.ready
        yield "transfers, killed before the response", payouts.killed
        yield "transfers, looked for later", payouts.check_later_lookup
        yield "transfers, one reversed", payouts.check_reversal
        yield "audit of the payouts", event_program.audit
        yield f"back-fill of {INVOICES}, killed", self.interrupted_backfill.read
        yield "audit after the interrupted backfill", self.interrupted_backfill.program.audit
        yield "clean exit", self.end

    def end(self):
        self.server.process.terminate()
        log = self.server.log.read_text(errors="replace")
        expect("exit, panics", (0, 0), (self.server.process.wait(30), log.count("panic")))

    def kill(self):
        for process in (self.server.process, self.local and self.local.process):
            if process:
                process.kill()
                process.wait()


def check(args):
    programs, failures = environment(HOME, PACKAGES), 0
    os.environ["POSTRIDER"] = args.postrider
    with tempfile.TemporaryDirectory() as base:
        peers = Peers(Path(base))
        try:
            peers.start(programs)
            for name, work in peers.checks():
                failures += report_case(name, work)[1]
        finally:
            peers.kill()
        if failures:
            print(peers.server.log.read_text(errors="replace")[-3000:])
    return failures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--postrider", required=True, help="the binary to start")
    args = parser.parse_args()
    try:
        sys.exit(1 if check(args) else 0)
    except Skip as skip:
        print(f"  {'localstripe':<34} skipped: {skip}")
    except Failed as failure:
        print(f"  FAILED: {failure}")
        sys.exit(1)


if __name__ == "__main__":
    main()
