"""Fills the store of the page benchmark through the server's own doors, so that every row, index and counter is true.

Thirty days pass in steps of three hours: in each, emails and product events are posted, recipients open, click and
complain about what the step before delivered, and the clock is moved ahead. Scheduled and waiting emails come last.
"""

import concurrent.futures
import hashlib
import hmac
import json
import random
import shutil
import smtplib
import time
from collections import Counter
from email.message import EmailMessage

import machine
from page_server import PROCESSOR_SECRET, SENDERS

DAYS, QUICK_DAYS = 30, 4
STEP_S = 3 * 3600
BATCH = 100
# An MX host limits the messages of a session.
PER_SESSION = 500
THREADS = 8
DOMAINS = 50
AGENT = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
CATEGORIES = ["transactional"] * 5 + ["product"] * 3 + ["newsletter"] * 2
TAGS = [("flow", f"flow-{n}") for n in range(20)]
PLANS = ["trial", "basic", "team", "enterprise"]
SUBJECTS = [
    "Your order {n} has been shipped",
    "Invoice {n}",
    "Welcome, person {n}",
    "What changed in week {n}",
    "Reset of your password",
    "Your report of month {n} is ready",
    "Reminder: meeting {n}",
    "New sign-in from Berlin",
]
# Shares of the emails, by the recipient's local part (page_receivers.py).
KINDS = {"person": 0.755, "reader": 0.14, "clicker": 0.05, "gone": 0.05, "angry": 0.005}
SCHEDULED_SHARE = 0.02
BUSY_SHARE = 0.005
TOLD_EVERY_S = 15
FREE_BYTES_MIN = 1_500_000_000
QUIET_S_MAX = 300


class Sizes:
    """How many objects of each kind, for a number of emails."""

    def __init__(self, emails, days):
        def at(number, least):
            return max(least, int(number * emails / 1_000_000))

        self.emails = emails
        self.steps = days * 86_400 // STEP_S
        self.persons = at(200_000, 500)
        self.suppressions = at(100_000, 200)
        self.opt_outs = at(2_000, 60)
        self.events = at(100_000, 300)
        self.visits = at(20_000, 200)
        self.templates = at(120, 12)
        self.partners = at(2_000, 60)
        self.referrals = at(10_000, 120)
        self.payments = at(20_000, 300)
        self.received = at(2_000, 60)
        self.refused = at(2_000, 60)


class Filler:
    def __init__(self, server, receivers, sizes):
        self.server = server
        self.receivers = receivers
        self.sizes = sizes
        self.random = random.Random(1)
        self.pool = concurrent.futures.ThreadPoolExecutor(THREADS)
        self.done = Counter()
        # Pages that no list links to.
        self.pages = []
        self.started = self.told = time.monotonic()
        self.emails_first = sizes.emails - int(sizes.emails * (SCHEDULED_SHARE + BUSY_SHARE))

    def run(self):
        self.server.provision()
        print("bench: templates, automations, webhooks, suppressions, partners", flush=True)
        self.templates()
        self.automations()
        self.webhooks()
        self.credentials()
        self.suppressions()
        self.program()
        self.started = time.monotonic()
        for step in range(self.sizes.steps):
            self.step(step)
            self.server.advance(STEP_S)
        for _ in range(2):
            self.carry_out(self.receivers.intents())
            self.server.advance(5)
        self.quieten()
        self.receive()
        self.payout_run()
        self.last_emails()
        self.quieten()
        self.pool.shutdown()
        return {**self.done, "pages": self.pages}

    def all(self, work, items):
        """Does work for each item on the threads, and raises the first failure."""
        for _ in self.pool.map(work, items):
            pass

    def share(self, total, step):
        """The numbers that a step contributes to a total."""
        steps = self.sizes.steps
        return range(total * step // steps, total * (step + 1) // steps)

    def quieten(self):
        """Waits until the server has nothing to do."""
        deadline = time.monotonic() + QUIET_S_MAX
        while time.monotonic() < deadline:
            before = machine.cpu_s([self.server.process.pid])
            time.sleep(2)
            if machine.cpu_s([self.server.process.pid]) - before < 0.1:
                return

    # Emails

    def step(self, step):
        sizes, intents = self.sizes, self.receivers.intents()
        numbers = self.share(self.emails_first, step)
        self.post([self.email(number) for number in numbers])
        self.carry_out(intents)
        self.all(self.post_event, self.share(sizes.events, step))
        self.all(self.visit, self.share(sizes.visits, step))
        self.all(self.pay, self.share(sizes.payments, step))
        self.all(self.refused_request, self.share(sizes.refused, step))
        self.tell(numbers.stop)

    def tell(self, done):
        now = time.monotonic()
        if now - self.told > TOLD_EVERY_S:
            self.told = now
            rate, size = done / (now - self.started), self.server.store_bytes() / 1e9
            line = f"bench: {done:,} of {self.sizes.emails:,} emails, {rate:,.0f} a second, {size:.1f} GB"
            print(line, flush=True)
            if shutil.disk_usage(self.server.directory).free < FREE_BYTES_MIN:
                raise machine.Failure("the disk is nearly full")

    def recipient(self):
        [kind] = self.random.choices(list(KINDS), KINDS.values())
        number = self.random.randrange(self.sizes.persons)
        return f"{kind}{number}@r{number % DOMAINS}.bench.test"

    def email(self, number, to=None, **fields):
        domain = SENDERS[int(self.random.random() ** 2 * len(SENDERS))]
        name, value = self.random.choice(TAGS)
        found = {
            "from": f"Team <team@{domain}>",
            "to": [to or self.recipient()],
            "category": self.random.choice(CATEGORIES),
            "tags": [{"name": name, "value": value}],
            **fields,
        }
        if number % 10 == 0:
            return {**found, "template": f"letter-{number // 10 % 12}", "variables": {"name": f"Person {number}"}}
        words = " ".join(self.random.choices(WORDS, k=25))
        link = f"https://www.bench.test/page/{number % 500}?from=mail"
        html = f'<h1>Hello</h1><p>{words}</p><p><a href="{link}">Read more</a></p><p>The team</p>'
        return {**found, "subject": self.random.choice(SUBJECTS).format(n=number), "html": html, "text": words}

    def post(self, emails):
        self.all(self.post_batch, [emails[at : at + BATCH] for at in range(0, len(emails), BATCH)])

    def post_batch(self, emails):
        answer = self.server.call("POST", "/emails/batch", {"emails": emails})
        refused = [item for item in answer["data"] if item.get("error")]
        # Opted out of the category.
        self.done["emails refused"] += len(refused)

    def carry_out(self, intents):
        """Lets recipients open, click and complain."""
        gets = [value for kind, value in intents if kind == "get"]
        self.all(self.get_tracked, gets)
        self.done["opens and clicks"] += len(gets)
        paths = [value for kind, value in intents if kind == "complain"]
        if paths:
            with smtplib.SMTP(*self.server.mx, timeout=60) as session:
                for path in paths:
                    session.sendmail("", [path], COMPLAINT.format(path=path))
        self.done["complaints"] += len(paths)

    def get_tracked(self, path):
        self.server.call("GET", path, headers={"User-Agent": AGENT}, ok=(200, 302), key=False)

    def last_emails(self):
        """Scheduled emails, and those whose recipients are not available."""
        first = self.emails_first
        scheduled = range(first, first + int(self.sizes.emails * SCHEDULED_SHARE))
        now = self.server.now_s()
        emails = []
        for number in scheduled:
            emails.append(self.email(number, scheduled_at=stamp(now + 3600 + self.random.randrange(20 * 86_400))))
        for number in range(scheduled.stop, self.sizes.emails):
            emails.append(self.email(number, to=f"busy{number}@r{number % DOMAINS}.bench.test"))
        self.post(emails)

    # The rest

    def templates(self):
        for number in range(self.sizes.templates):
            words = " ".join(self.random.choices(WORDS, k=150))
            html = f'<h1>Hi {{{{name}}}}</h1><p>{words}</p><p><a href="https://www.bench.test/x">More</a></p>'
            sender = f"Team <team@{SENDERS[number % len(SENDERS)]}>"
            body = {"name": f"Letter {number}", "alias": f"letter-{number}", "from": sender, "html": html}
            made = self.server.call("POST", "/templates", {**body, "subject": "Hello {{name}}"})["template"]["id"]
            self.server.call("POST", f"/templates/{made}/publish", {})
            for version in range(number % 4):
                self.server.call("PATCH", f"/templates/{made}", {"html": f"{html}<p>Version {version}</p>"})
                self.server.call("POST", f"/templates/{made}/publish", {})

    def automations(self):
        of_trials = {"all": [{"field": "event.data.plan", "op": "eq", "value": "trial"}]}
        steps = [
            {"type": "send_email", "template": "letter-1", "variables": {"name": "{{event.data.name}}"}},
            {"type": "delay", "duration": "3d"},
            {"type": "condition", **of_trials},
            {"type": "send_email", "template": "letter-2", "variables": {"name": "{{event.data.name}}"}},
        ]
        for number in range(20):
            trigger = {"event": f"product.step{number}" if number else "user.created", "filter": of_trials}
            body = {"name": f"Automation {number}", "trigger": trigger, "steps": steps}
            made = self.server.call("POST", "/automations", body)["automation"]["id"]
            if number % 2 == 0:
                self.server.call("POST", f"/automations/{made}", {"action": "activate"})

    def webhooks(self):
        url = "http://{}:{}/hook".format(*self.server.hooks)
        for events in (["email.bounced", "email.complained"], ["email.clicked"], ["domain.verified"]):
            self.server.call("POST", "/webhooks", {"url": url, "events": events})

    def credentials(self):
        for number in range(12):
            scope = "sending" if number % 2 else "full"
            self.server.call("POST", "/api-keys", {"name": f"Key {number}", "scope": scope})
            self.server.call("POST", "/smtp-credentials", {"name": f"Credential {number}"})

    def suppressions(self):
        rows = [f"left{number}@r{number % DOMAINS}.bench.test" for number in range(self.sizes.suppressions)]
        for at in range(0, len(rows), 50_000):
            csv = "\n".join(["email", *rows[at : at + 50_000], ""])
            made = self.server.call("POST", "/suppressions/import", {"csv": csv})["import"]["id"]
            path = f"/suppressions/import/{made}"
            self.pages = [f"/dashboard/suppressions/imports/{made}"]
            deadline = time.monotonic() + QUIET_S_MAX
            while self.server.call("GET", path)["import"]["status"] not in ("done", "completed"):
                if time.monotonic() > deadline:
                    raise machine.Failure("the import of suppressions does not end")
                time.sleep(0.1)
        self.all(self.opt_out, range(self.sizes.opt_outs))

    def opt_out(self, number):
        body = {"email": f"person{number}@r{number % DOMAINS}.bench.test", "category": "newsletter"}
        self.server.call("POST", "/category-opt-outs", body)

    def post_event(self, number):
        """Each person has four events: a sign-up, an activation, a subscription, and one of the product."""
        person = number // 4
        name = ["user.created", "user.activated", "subscription.started", f"product.step{person % 20}"][number % 4]
        data = {"id": f"u{person}", "name": f"Person {person}", "plan": PLANS[person % len(PLANS)], "number": number}
        if name == "subscription.started":
            data |= {"id": f"sub{person}", "value": 49, "currency": "USD"}
        if person % 2 == 0:
            data["visitor_id"] = f"visitor{person:08}"
        body = {"name": name, "user_id": f"u{person}", "email": f"person{person}@r{person % DOMAINS}.bench.test"}
        self.server.call("POST", "/events", {**body, "data": data})

    def visit(self, number):
        source = ["newsletter", "search", "podcast", "partner"][number % 4]
        body = {"site": self.server.account, "visitor_id": f"visitor{number:08}"}
        headers = {"User-Agent": AGENT, "X-Forwarded-For": f"198.51.{number // 250 % 250}.{number % 250 + 1}"}
        url = f"https://www.bench.test/?utm_source={source}"
        self.server.call("POST", "/visits", {**body, "url": url}, headers, ok=(200, 202, 204, 429), key=False)

    def refused_request(self, number):
        self.server.call("POST", "/emails", {"from": "nobody", "to": [f"x{number}"]}, ok=(400, 403, 422))

    def receive(self):
        numbers = range(self.sizes.received)
        for at in range(0, len(numbers), PER_SESSION):
            with smtplib.SMTP(*self.server.mx, timeout=60) as session:
                for number in numbers[at : at + PER_SESSION]:
                    author, to = f"grace{number}@r1.bench.test", f"help@{self.server.inbound}"
                    session.send_message(question(number, author, to), author, [to])

    # The affiliate program

    def program(self):
        def admin(*words):
            return self.server.admin("affiliate", *words)

        admin("enable", "--website", "https://www.bench.test", "--currency", "usd", "--mode", "test")
        connected = admin("processor", "connect", "--webhook-secret", PROCESSOR_SECRET)
        self.processor_path = "/" + connected["processor"]["webhook_url"].split("/", 3)[3]
        admin("campaign", "default", '{"name":"Partners","commission_bps":2000,"hold_days":0}')
        admin("set", 'min_payout={"usd":1000}')
        admin("go-live")
        for number in range(8):
            body = {"name": f"Campaign {number}", "commission_type": "percent", "commission_bps": 1000 + number * 100}
            self.server.call("POST", "/affiliate-campaigns", body)
        self.all(self.partner, range(self.sizes.partners))
        self.all(self.referral, range(self.sizes.referrals))

    def payout_run(self):
        """Drafts a run when commissions are earned: holds are released once a minute."""
        deadline = time.monotonic() + 90
        while time.monotonic() < deadline and not self.server.admin("affiliate", "run", "draft")["run"]:
            time.sleep(2)

    def partner(self, number):
        # A partner in the customers' own domain: its referrals are held for review.
        email = f"partner{number}@{'bench.test' if number % 50 == 1 else 'partners.example'}"
        body = {"email": email, "first_name": "Partner", "last_name": f"No {number}", "token": f"partner-{number}"}
        more = {"paypal_email": email, "send_invite": False, "status": "pending" if number % 20 == 19 else "active"}
        self.server.call("POST", "/affiliates", body | more)

    def referral(self, number):
        partner = number % self.sizes.partners
        body = {"token": f"partner-{partner - (partner % 20 == 19)}", "processor_customer_id": f"cus_{number}"}
        body["email"] = f"customer{number}@r{number % DOMAINS}.bench.test"
        self.server.call("POST", "/affiliate-referrals", body)

    def pay(self, number):
        """An event of the payment processor, signed with the server's time."""
        at = int(self.server.now_s())
        invoice = {"id": f"in_{number}", "object": "invoice", "customer": f"cus_{number % self.sizes.referrals}"}
        invoice |= {"currency": "usd", "status": "paid", "created": at, "amount_paid": 4900, "total": 4900}
        invoice |= {"subtotal": 4900, "status_transitions": {"paid_at": at}}
        event = {"id": f"evt_{number}", "object": "event", "type": "invoice.paid", "created": at, "livemode": False}
        body = json.dumps({**event, "data": {"object": invoice}}).encode()
        tag = hmac.new(PROCESSOR_SECRET.encode(), f"{at}.".encode() + body, hashlib.sha256).hexdigest()
        self.server.call("POST", self.processor_path, body, {"Stripe-Signature": f"t={at},v1={tag}"}, key=False)


def question(number, author, to):
    """A message to the account; every third has HTML and an attachment."""
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = f"Grace <{author}>", to, f"Question {number}"
    message["Message-ID"] = f"<{number}@r1.bench.test>"
    message.set_content("Hello,\nhow does it work?\n")
    if number % 3 == 0:
        message.add_alternative("<p>Hello,</p><p>how does it work?</p>", subtype="html")
        message.add_attachment(b"a,b\n1,2\n", maintype="text", subtype="csv", filename="question.csv")
    return message


def stamp(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


WORDS = """about above account after again answer before begin better between build change check choose clear close
company complete customer daily deliver design detail develop email every example expect figure final find first follow
general happen holiday improve include inform invite journey keep language large later learn letter little market
measure message middle morning never notice number offer often order other paper people perhaps picture place plan
possible present problem process product question quick reach reader ready reason receive remember report require
result season second service simple special start story support system table thank their together travel under update
useful value visit water weather welcome window without wonder world write yellow yesterday""".split()

COMPLAINT = """From: Feedback loop <fbl@r0.bench.test>
To: <{path}>
Subject: A recipient reported this message
MIME-Version: 1.0
Content-Type: multipart/report; report-type=feedback-report; boundary="b"

--b
Content-Type: text/plain; charset=us-ascii

A recipient reported this message.

--b
Content-Type: message/feedback-report

Feedback-Type: abuse
User-Agent: bench/1
Version: 1

--b
Content-Type: text/rfc822-headers

Subject: Hello

--b--
"""
