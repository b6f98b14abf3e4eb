"""The events of a payment processor for one year of a shop: customers, their purchases, refunds and disputes.

A history is generated from a seed: first the people, since partners refer them before anybody pays, then two acts of
events in chronological order. Partners are paid between the acts. `ledger.py` sends each history many times, in
different orders.

The history contains only what a ledger can compute independently of the order of events (invariant I9 of affiliate/src/audit.rs):
a customer has one invoice where only the first one earns, buys within the months that earn, is referred by one partner,
and is excluded by its invoices only.
"""

import collections
import json
import random

DAY = 86_400
# Products of the shop; their commission rates are in `ledger.py`.
PRODUCTS = ["team", "solo", "setup", "gift", "fixed"]
# Partners: a token each, and the weight of their share of customers.
SELLERS = {"ada": 8, "bea": 5, "cyd": 3, "dan": 3, "eve": 3, "fay": 2, "gus": 3, "hal": 3}
# How a customer is attributed to a partner.
WAYS = {
    "id": 8,            # the API names the customer
    "email": 6,         # the API names the address
    "metadata": 4,      # the customer's metadata name the referral
    "checkout": 5,      # a checkout names the visit
    "signup": 3,        # a visit, a sign-up, and a checkout that names the visit
    "subscription": 4,  # the subscription's metadata name the visit
    "invoice": 3,       # the invoices' metadata name the visit
    "guest": 3,         # checkouts without a customer or an invoice name the referral
    "nobody": 5,        # not referred
    "before": 2,        # bought before the referral
    "self": 2,          # the partner's own address in another spelling
}
VISITS = {"checkout", "signup", "subscription", "invoice", "many"}
REFERRALS = {"id", "email", "metadata", "guest", "before", "self"}


def chosen(random_source, weights):
    return random_source.choices(list(weights), list(weights.values()))[0]


class Person:
    """A customer."""

    def __init__(self, random_source, number, way=None):
        self.number, self.way = number, way or chosen(random_source, WAYS)
        self.id, self.subscription = f"cus_{number}", f"sub_{number}"
        self.seller = chosen(random_source, SELLERS)
        self.email = f"c{number}@home{number}.example"
        # The referral's address may differ from the customer's address at the processor.
        self.known_as = f"m{number}@work{number}.example" if self.way == "metadata" else self.email
        if self.way == "self":
            self.known_as = self.email = f"{self.seller}+{number}@partners-{self.seller}.example"
        self.currency = chosen(random_source, {"usd": 12, "eur": 4, "jpy": 2, "kwd": 1, "isk": 1})
        # Object shapes of the processor's API before or since version 2025-03-31.
        self.is_old = random_source.random() < 0.45
        # Placeholder for the id of the visit or referral, which exists only after the program is set up.
        self.mark = f"@{number}@"

    def metadata(self, *ways):
        return {"stx_referral": self.mark} if self.way in ways else {}

    def api(self):
        """The referral that is sent to the API, or `None`."""
        if self.way not in REFERRALS:
            return None
        fields = {"token": self.seller, "email": self.known_as, "sub_id": f"s{self.number % 3}"}
        return {**fields, "processor_customer_id": self.id} if self.way in ("id", "before") else fields


class Charge:
    """A payment of an invoice or a checkout, and its refunds."""

    def __init__(self, name, amount, person, invoice=None):
        self.id, self.intent, self.amount = f"ch_{name}", f"pi_{name}", amount
        self.person, self.invoice, self.refunds = person, invoice, []

    def refunded(self):
        return sum(refund["amount"] for refund in self.refunds if refund["status"] not in ("failed", "canceled"))

    def refund(self, amount, at, status="succeeded"):
        self.refunds.append({
            "id": f"re_{len(self.refunds)}_{self.id}", "object": "refund", "amount": amount, "charge": self.id,
            "payment_intent": self.intent, "currency": self.person.currency, "created": at, "status": status,
        })
        return self.refunds[-1]

    def object(self):
        fields = {
            "id": self.id, "object": "charge", "amount": self.amount, "amount_refunded": self.refunded(),
            "currency": self.person.currency, "payment_intent": self.intent,
            "customer": None if self.person.way == "guest" else self.person.id, "refunded": self.refunded() >= self.amount,
            "status": "succeeded", "metadata": {},
        }
        if self.person.is_old:
            fields |= {"invoice": self.invoice, "refunds": {"object": "list", "data": [dict(r) for r in self.refunds]}}
        return fields

    def dispute(self, which, status):
        whole = {"id": self.id, "object": "charge", "payment_intent": self.intent}
        return {
            "id": f"dp_{which}_{self.id}", "object": "dispute", "amount": self.amount, "currency": self.person.currency,
            "charge": whole if self.person.is_old else self.id,
            "payment_intent": None if self.person.is_old else self.intent, "status": status,
        }


class History:
    """People, and two acts of events as `(id, body)` in chronological order."""

    def __init__(self, seed, size, start):
        self.random_source, self.start = random.Random(f"history {seed}"), start
        self.seed, self.events, self.count = seed, [], 0
        self.people, self.charges = [], []
        # Inquiries that stay open: the lines of their charges stay pending.
        self.disputed = set()
        # Events that need many commits.
        self.heavy = set()
        # Creation times of subscriptions.
        self.begun = {}
        first = size * 9 // 10
        if size >= 400:
            self.many(Person(self.random_source, 0, "many"), invoices=size // 8)
        while len(self.events) < first:
            self.live(Person(self.random_source, len(self.people) + 1))
        self.acts = [self.act()]
        self.later(size - first)
        self.acts.append(self.act())

    def act(self):
        """The events since the last act, in chronological order."""
        events, self.events = sorted(self.events, key=lambda event: event[0]), []
        return [(event["id"], json.dumps(event)) for _, event in events]

    def name(self, marks):
        """Replaces the placeholders by the ids that the server created."""
        for number, act in enumerate(self.acts):
            for mark, made in marks.items():
                act = [(id, body.replace(mark, made)) for id, body in act]
            self.acts[number] = act

    def add_event(self, at, kind, thing, livemode=False):
        id = f"evt_{self.seed}_{self.count}"
        self.count += 1
        event = {"id": id, "object": "event", "type": kind, "created": int(at), "livemode": livemode}
        self.events.append((int(at), {**event, "data": {"object": thing}}))
        return id

    # Life of a customer.

    def live(self, person):
        self.people.append(person)
        at = self.start + self.random_source.randrange(1, 90) * DAY + self.random_source.randrange(DAY)
        if person.way == "guest":
            return self.guest(person, at)
        self.begin(person, at)
        if person.way == "before":
            return self.buy(person, self.start - 30 * DAY)
        # Where only the first sale earns, there must be only one.
        sales = 1 if person.seller == "dan" else self.random_source.choice([1, 1, 2, 2, 3, 5])
        for nth in range(sales):
            paid_at = at + nth * 30 * DAY + self.random_source.randrange(60, 7_200)
            charges = self.buy(person, paid_at, f"{person.number}_{nth}", is_first=nth == 0)
            if charges and self.random_source.random() < 0.55:
                self.become(charges, paid_at)
        self.end(person, at + sales * 30 * DAY)

    def many(self, person, invoices):
        """A customer with very many invoices who is attributed to a partner after all of them are paid."""
        self.people.append(person)
        at = self.start + 20 * DAY
        person.seller, person.is_old = "bea", False
        self.begin(person, at)
        for nth in range(invoices):
            paid_at = at + nth * DAY
            charges = self.buy(person, paid_at, f"{person.number}_{nth}")
            if charges and nth % 9 == 0:
                self.become(charges, paid_at)
        self.heavy.add(self.check_out(person, at + invoices * DAY, None))

    def begin(self, person, at):
        customer = {
            "id": person.id, "object": "customer", "email": person.email, "created": int(at),
            "metadata": person.metadata("metadata"),
        }
        self.add_event(at, "customer.created", customer)
        if self.random_source.random() < 0.4:
            self.add_event(at + 5 * DAY, "customer.updated", {**customer, "name": "Lin"})
        if person.way in ("before", "many"):
            return
        subscription = self.subscribed(person, person.subscription, "trialing", at)
        if self.random_source.random() < 0.5:
            self.add_event(at, "customer.subscription.created", subscription)
            # A trial has an invoice of zero.
            self.buy(person, at, f"{person.number}_trial", is_free=True)
        else:
            self.add_event(at, "customer.subscription.created", {**subscription, "status": "incomplete"})
        self.add_event(at + 60, "customer.subscription.updated", {**subscription, "status": "active"})
        if person.way in ("checkout", "signup"):
            self.check_out(person, at + 120, f"in_{person.number}_0")

    def end(self, person, at):
        fate = self.random_source.random()
        subscription = self.subscribed(person, person.subscription, "canceled", at)
        if fate < 0.25:
            self.add_event(at, "customer.subscription.deleted", subscription)
        elif fate < 0.35:
            self.add_event(at, "customer.subscription.updated", {**subscription, "status": "unpaid", "ended_at": None})
        elif fate < 0.55:
            # A second subscription, before or after the end of the first: without a payment it does not undo the churn.
            other_at = at - DAY if fate < 0.45 else at + DAY
            other = self.subscribed(person, f"{person.subscription}_b", "active", other_at)
            self.add_event(other_at, "customer.subscription.created", other)
            self.add_event(at, "customer.subscription.deleted", subscription)

    def subscribed(self, person, id, status, at):
        return {
            "id": id, "object": "subscription", "customer": person.id, "status": status,
            "created": self.begun.setdefault(id, int(at)), "ended_at": int(at) if status == "canceled" else None,
            "metadata": person.metadata("subscription"),
        }

    def check_out(self, person, at, invoice):
        session = {
            "id": f"cs_{person.number}", "object": "checkout.session", "customer": person.id,
            "client_reference_id": person.mark, "metadata": person.metadata("checkout"), "invoice": invoice,
            "subscription": person.subscription, "payment_intent": None, "payment_status": "paid",
            "amount_total": 5_000, "currency": person.currency, "customer_details": {"email": person.email},
        }
        return self.add_event(at, "checkout.session.completed", session)

    def guest(self, person, at):
        for nth in range(1 if person.seller == "dan" else self.random_source.choice([1, 1, 2])):
            at += self.random_source.randrange(1, 20) * DAY
            charge = Charge(f"{person.number}_{nth}", self.amount(person), person)
            session = {
                "id": f"cs_{person.number}_{nth}", "object": "checkout.session", "customer": None, "invoice": None,
                "client_reference_id": person.mark, "metadata": {}, "payment_intent": charge.intent,
                "payment_status": "paid", "amount_total": charge.amount, "currency": person.currency,
                "total_details": {"amount_tax": charge.amount // 6}, "customer_details": {"email": person.email},
            }
            if self.random_source.random() < 0.3:
                self.add_event(at - DAY // 2, "checkout.session.completed", {**session, "payment_status": "unpaid"})
                self.add_event(at, "checkout.session.async_payment_succeeded", session)
            else:
                self.add_event(at, "checkout.session.completed", session)
            self.charges.append(([charge], at))
            if self.random_source.random() < 0.6:
                self.become([charge], at)

    # Sales.

    def amount(self, person):
        amount = self.random_source.choice([490, 1_900, 4_999, 10_001, 25_000, 123_456, 900_000])
        amount += self.random_source.randrange(100)
        return amount * 100 if person.currency == "isk" else amount

    def buy(self, person, paid_at, name=None, is_first=False, is_free=False):
        """A paid invoice and the charges that paid it."""
        id, paid_at = f"in_{name or person.number}", int(paid_at)
        invoice = {
            "id": id, "object": "invoice", "customer": person.id, "customer_email": person.email,
            "currency": person.currency, "status": "paid", "created": paid_at - 60,
            "status_transitions": {"paid_at": paid_at}, "metadata": person.metadata("invoice"),
            "description": self.random_source.choice([None, "Thank you"]),
            **self.sums(person, is_free),
        }
        if not is_first and self.random_source.random() < 0.06:
            invoice["metadata"] = {**invoice["metadata"], "stx": self.random_source.choice(["false", "False"])}
        charges = self.pay(person, name or str(person.number), invoice)
        kinds = self.random_source.choice([["paid", "payment_succeeded"], ["paid"], ["payment_succeeded"]])
        for kind in kinds:
            self.add_event(paid_at + self.random_source.randrange(3), f"invoice.{kind}", invoice)
        self.noise(paid_at, invoice)
        if charges:
            self.charges.append((charges, paid_at))
        return charges

    def sums(self, person, is_free):
        """Lines, taxes and totals in the customer's API shape."""
        net = tax = 0
        rate, inclusive = self.random_source.choice([(0, False), (0, False), (20, False), (10, True)])
        lines = []
        for number in range(0 if is_free else self.random_source.choice([1, 1, 2, 3])):
            amount = self.amount(person)
            # A proration credit, never of the full amount.
            amount = -min(amount, net) // 2 if number == 2 else amount
            discount = amount // 5 if self.random_source.random() < 0.25 else 0
            base = amount - discount
            part = base * rate // (100 + rate) if inclusive else base * rate // 100
            net, tax = net + base, tax + part
            lines.append(self.line(person, number, (amount, discount, part, inclusive)))
        total = net if inclusive else net + tax
        fields = {
            "lines": {"object": "list", "has_more": False, "data": lines}, "total": total,
            "total_excluding_tax": total - tax,
            "amount_paid": total if self.random_source.random() < 0.85 else total * 3 // 5,
        }
        if self.random_source.random() < 0.3:
            del fields["total_excluding_tax"]
        if person.is_old:
            return {**fields, "tax": tax, "paid": True}
        return {**fields, "total_taxes": [{"amount": tax, "tax_behavior": "inclusive" if inclusive else "exclusive"}]}

    def line(self, person, number, figures):
        amount, discount, tax, inclusive = figures
        product = self.random_source.choice(PRODUCTS)
        line = {
            "id": f"il_{number}", "object": "line_item", "amount": amount, "currency": person.currency,
            "description": product, "discount_amounts": [{"amount": discount}] if discount else [],
        }
        if person.is_old:
            price = {"id": f"price_{product}", "object": "price", "product": f"prod_{product}"}
            return {**line, "price": price, "tax_amounts": [{"amount": tax, "inclusive": inclusive}]}
        price = {"price": f"price_{product}", "product": f"prod_{product}"}
        how = "inclusive" if inclusive else "exclusive"
        return {**line, "pricing": {"price_details": price}, "taxes": [{"amount": tax, "tax_behavior": how}]}

    def pay(self, person, name, invoice):
        """The charges of an invoice. The invoice names them, or a later event links them."""
        paid, id = invoice["amount_paid"], invoice["id"]
        reference = {"metadata": person.metadata("subscription"), "subscription": person.subscription}
        if person.is_old:
            invoice |= {"subscription": person.subscription, "subscription_details": {"metadata": reference["metadata"]}}
        else:
            invoice["parent"] = {"type": "subscription_details", "subscription_details": reference}
        if paid <= 0:
            return []
        if person.is_old:
            charge = Charge(name, paid, person, id)
            # Some payments do not name their charge yet.
            invoice |= {"payment_intent": charge.intent, "charge": self.random_source.choice([charge.id, charge.id, None])}
            return [charge]
        parts = [paid // 3, paid - paid // 3] if paid > 10 and self.random_source.random() < 0.15 else [paid]
        charges = [Charge(f"{name}_{letter}", part, person, id) for letter, part in zip("ab", parts)]
        payments = [
            {"id": f"inpay_{charge.id}", "object": "invoice_payment", "invoice": id, "status": "paid",
             "payment": {"type": "payment_intent", "payment_intent": charge.intent}}
            for charge in charges
        ]
        is_listed = self.random_source.random() < 0.6
        if is_listed:
            invoice["payments"] = {"object": "list", "data": payments}
        if not is_listed or self.random_source.random() < 0.5:
            for payment in payments:
                self.add_event(invoice["status_transitions"]["paid_at"] + 1, "invoice_payment.paid", payment)
        return charges

    def noise(self, at, invoice):
        """Events without effect on the ledger."""
        luck = self.random_source.random()
        if luck < 0.05:
            self.add_event(at, "invoice.finalized", invoice)
        elif luck < 0.08:
            self.add_event(at, "invoice.paid", {**invoice, "id": f"{invoice['id']}_live"}, livemode=True)

    # Refunds, disputes and credit notes.

    def become(self, charges, paid_at):
        """Applies one or two such events to a sale."""
        endings = [self.refund_parts, self.refund_all, self.fail, self.cancel, self.dispute, self.ask, self.note]
        at = paid_at + self.random_source.randrange(1, 20) * DAY
        for fate in self.random_source.sample(endings, self.random_source.choice([1, 1, 1, 2])):
            charge = self.random_source.choice(charges)
            fate(charge, at)
            at += self.random_source.randrange(1, 10) * DAY + self.random_source.randrange(100)

    def refund(self, charge, amount, at, status="succeeded"):
        """Reported by the charge, by the refund, or by both, within two seconds."""
        amount = min(amount, charge.amount - charge.refunded())
        if amount <= 0:
            return None
        refund = charge.refund(amount, int(at), status)
        who = self.random_source.choice(["both", "both", "charge", "refund"])
        if who != "refund":
            self.add_event(at + self.random_source.randrange(2), "charge.refunded", charge.object())
        if who != "charge":
            self.add_event(at, "refund.created", dict(refund))
        return refund

    def refund_parts(self, charge, at):
        for _ in range(self.random_source.choice([1, 2, 3])):
            share = self.random_source.choice([charge.amount // 10, charge.amount // 3, charge.amount * 2 // 3, 1])
            self.refund(charge, share, at)
            at += self.random_source.randrange(1, 3 * DAY)

    def refund_all(self, charge, at):
        if self.random_source.random() < 0.4:
            self.refund(charge, charge.amount // 4, at - 3_600)
        self.refund(charge, charge.amount, at)

    def fail(self, charge, at):
        """A refund that fails; sometimes another one succeeds later."""
        refund = self.refund(charge, self.random_source.choice([charge.amount, charge.amount // 2]), at, "pending")
        if not refund:
            return
        refund["status"] = "failed"
        self.add_event(at + 4 * DAY, "refund.failed", dict(refund))
        if self.random_source.random() < 0.5:
            self.add_event(at + 4 * DAY, "charge.refund.updated", dict(refund))
        if self.random_source.random() < 0.4:
            self.refund(charge, charge.amount // 2, at + 6 * DAY)

    def cancel(self, charge, at):
        refund = self.refund(charge, charge.amount // 3, at, "requires_action")
        if refund:
            refund["status"] = "canceled"
            self.add_event(at + 2 * DAY, "refund.updated", dict(refund))

    def dispute(self, charge, at):
        which = self.count
        self.add_event(at, "charge.dispute.created", charge.dispute(which, "needs_response"))
        if self.random_source.random() < 0.5:
            self.add_event(at + DAY, "charge.dispute.funds_withdrawn", charge.dispute(which, "under_review"))
        if (end := self.random_source.choice(["won", "lost", None])) is not None:
            self.add_event(at + 9 * DAY, "charge.dispute.closed", charge.dispute(which, end))

    def ask(self, charge, at):
        """An inquiry that is closed, becomes a dispute, or stays open where holds are longer than the act."""
        which = self.count
        self.add_event(at, "charge.dispute.created", charge.dispute(which, "warning_needs_response"))
        end = self.random_source.choice(["closed", "closed", "dispute", "open"])
        if end == "dispute":
            self.add_event(at + 2 * DAY, "charge.dispute.updated", charge.dispute(which, "needs_response"))
        elif end == "closed" or charge.person.seller != "fay":
            self.add_event(at + 6 * DAY, "charge.dispute.closed", charge.dispute(which, "warning_closed"))
        else:
            self.disputed.add(charge.invoice or charge.intent)

    def note(self, charge, at):
        """A credit note: out of band, to the customer balance, or partly by a refund."""
        if not charge.invoice:
            return
        given, outside = max(charge.amount // 5, 1), self.random_source.choice([True, False])
        note = {
            "id": f"cn_{charge.id}", "object": "credit_note", "invoice": charge.invoice, "status": "issued",
            "currency": charge.person.currency, "post_payment_amount": given,
            "out_of_band_amount": given if outside else 0,
        }
        if not outside and (refund := self.refund(charge, given // 2, at)):
            note["refunds"] = [{"refund": refund["id"], "amount_refunded": refund["amount"]}]
        self.add_event(at, "credit_note.created", note)
        if self.random_source.random() < 0.35:
            self.add_event(at + DAY, "credit_note.voided", {**note, "status": "void"})

    # The second act, after partners were paid.

    def later(self, size):
        """Late refunds and disputes, and further sales."""
        at = self.start + 720 * DAY
        linked = [one for one in self.people if one.way in ("id", "email", "checkout") and one.seller != "dan"]
        bought = collections.Counter()
        while len(self.events) < size:
            at += self.random_source.randrange(1, 7_200)
            if linked and self.random_source.random() < 0.3:
                person = self.random_source.choice(linked)
                bought[person.number] += 1
                charges = self.buy(person, at, f"{person.number}_late{bought[person.number]}")
                if charges and self.random_source.random() < 0.3:
                    self.become(charges, at)
            else:
                charges, _ = self.random_source.choice(self.charges)
                self.charges.remove((charges, _))
                self.become(charges, at)
