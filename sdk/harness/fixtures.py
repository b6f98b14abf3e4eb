"""`Fixtures`: makes the objects that the examples name, through plain HTTP, SMTP and the operator's commands."""

import datetime
import hashlib
import hmac
import json
import smtplib
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid

from webhook_receiver import WebhookReceiver

WAIT_S = 120
PROCESSOR_SECRET = "whsec_0123456789abcdef"


class Fixtures:
    def __init__(self, server):
        self.server = server
        self.domain = server.ready["domain"]
        self.receiver = WebhookReceiver()
        self.owner = self.get("/account")["account"]["email"]
        self.other_key = None

    def prepare(self):
        """Makes what examples name literally: a template, a program."""
        self.post("/templates", {"name": "Welcome", "alias": "welcome", "subject": "Hi {{name}}", "html": "<p>Hi {{name}}</p>"})
        self.publish_welcome()
        self.call("PATCH", f"/domains/{self.domain}", {"inbound_enabled": True})
        self.post("/suppressions", {"email": "ada@example.org"})
        self.admin("affiliate", "enable", "--website", "https://shop.example", "--currency", "usd", "--mode", "test")
        self.admin("affiliate", "processor", "connect", "--webhook-secret", PROCESSOR_SECRET)
        # Commissions are earned at once.
        campaign = {"name": "Partners", "commission_type": "percent", "commission_bps": 2000, "recurring_months": 12, "hold_days": 0}
        self.admin("affiliate", "campaign", "default", json.dumps(campaign))
        self.admin("affiliate", "go-live")

    def publish_welcome(self):
        """Publishes the template twice, so that one version can be rolled back to."""
        for _ in range(2):
            change = {"subject": f"Hello {{{{name}}}} {uuid.uuid4().hex[:4]}", "from": f"Ada <ada@{self.domain}>"}
            self.call("PATCH", "/templates/welcome", change)
            self.post("/templates/welcome/publish", {})

    def before(self, operation):
        """Makes room for an example that creates what exists already."""
        if operation == "create_template":
            self.call("DELETE", "/templates/welcome")
        if operation == "create_domain_claim":
            self.domain_of_another("example.net")
        if operation == "delete_dns_credentials":
            credentials = {"server": "192.0.2.53", "key_name": "postrider", "secret": self.dns_secret(None)["dns_secret"]}
            self.call("PUT", "/dns-credentials/rfc2136", {"credentials": credentials})
        if operation in ("forward_received_email", "reply_to_received_email"):
            for suppression in self.get("/suppressions?limit=100")["suppressions"]:
                self.call("DELETE", f"/suppressions/{suppression['id']}?force=true")

    def after(self, operation):
        if operation == "create_template":
            self.publish_welcome()

    def admin(self, *words):
        # There may be another account.
        of_owner = ["--account", self.owner] if words[0] in ("affiliate", "session") else []
        command = [self.server.binary, "admin", "--data-dir", self.server.directory.name + "/data", *words, *of_owner]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(words)}: {done.stderr}")
        return json.loads(done.stdout) if "--json" in words else None

    def call(self, method, path, body=None, key=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.server.base_url + path, data, method=method)
        request.add_header("authorization", "Bearer " + (key or self.server.api_key))
        request.add_header("content-type", "application/json")
        try:
            with urllib.request.urlopen(request, timeout=WAIT_S) as response:
                return json.loads(response.read())
        except urllib.error.HTTPError as error:
            raise RuntimeError(f"{method} {path}: {error.code} {error.read().decode()[:500]}") from None

    def post(self, path, body):
        return self.call("POST", path, body)

    def get(self, path):
        return self.call("GET", path)

    def wait(self, look):
        """Repeats a look until it finds something: for what the server does after its answer."""
        deadline = time.monotonic() + WAIT_S
        while not (found := look()):
            if time.monotonic() > deadline:
                raise RuntimeError("a fixture did not come into being in time")
            time.sleep(0.05)
        return found

    def values(self, names):
        """Values of placeholders. Objects are new, so that an example may delete them."""
        values = {}
        for name in names:
            if name not in values:
                make = getattr(self, name, None)
                if make is None:
                    raise KeyError(name)
                values |= make(values)
        return values

    def email_id(self, _=None, **fields):
        body = {"from": f"Ada <ada@{self.domain}>", "to": ["grace@example.net"], "subject": "Welcome", "text": "Hello"}
        # Scheduled emails have none.
        body |= {} if "scheduled_at" in fields else {"attachments": [{"name": "hello.txt", "data": "SGVsbG8="}]}
        return {"email_id": self.post("/emails", body | fields)["id"]}

    def scheduled_email_id(self, _):
        return {"scheduled_email_id": self.email_id(scheduled_at=in_days(30))["email_id"]}

    def tomorrow(self, _):
        return {"tomorrow": in_days(1)}

    def week_ago(self, _):
        return {"week_ago": in_days(-7)}

    def request_id(self, _):
        return {"request_id": self.wait(lambda: self.get("/logs?limit=1")["logs"])[0]["id"]}

    def api_key_id(self, _):
        return {"api_key_id": self.post("/api-keys", {"name": "example", "scope": "full"})["api_key"]["id"]}

    def approval_id(self, _):
        key = {"name": "assistant", "scope": "sending", "policy": {"approve": ["send"]}}
        secret = self.post("/api-keys", key)["secret"]
        email = {"from": f"Ada <ada@{self.domain}>", "to": ["grace@example.net"], "subject": "Welcome", "text": "Hello"}
        return {"approval_id": self.call("POST", "/emails", email, secret)["approval_id"]}

    def approve(self, approval_id):
        """Approves what the owner sees."""
        path = f"/approvals/{approval_id}"
        self.as_owner(f"{path}/approve", {"hash": self.get(path)["approval"]["hash"]})

    def as_owner(self, path, body):
        """Posts with a session of the owner."""
        session = self.admin("session", "create", "--json")
        request = urllib.request.Request(self.server.base_url + path, json.dumps(body).encode(), method="POST")
        request.add_header("content-type", "application/json")
        request.add_header("cookie", session["cookie"])
        request.add_header("x-csrf-token", session["csrf_token"])
        urllib.request.urlopen(request, timeout=WAIT_S).read()

    def grant_id(self, _):
        """A grant by the device authorization grant (RFC 8628), which a session of the owner approves."""
        device = self.form("/oauth/device", {"client_id": "postrider-cli", "scope": "read"})
        self.as_owner(f"/auth/device-requests/{device['user_code']}", {"approve": True})
        grant_type = "urn:ietf:params:oauth:grant-type:device_code"
        self.form("/oauth/token", {"grant_type": grant_type, "device_code": device["device_code"], "client_id": "postrider-cli"})
        return {"grant_id": self.get("/grants?limit=1")["grants"][0]["id"]}

    def form(self, path, fields):
        """Posts a form without credentials."""
        data = urllib.parse.urlencode(fields).encode()
        with urllib.request.urlopen(self.server.base_url + path, data, timeout=WAIT_S) as response:
            return json.loads(response.read())

    def smtp_credential_id(self, _):
        return {"smtp_credential_id": self.post("/smtp-credentials", {"name": "example"})["smtp_credential"]["id"]}

    def domain_id(self, _):
        return {"domain_id": self.post("/domains", {"name": f"d{uuid.uuid4().hex[:10]}.example.org"})["domain"]["id"]}

    def dns_secret(self, _):
        return {"dns_secret": "YW4tZXhhbXBsZS1vZi1hLXNlY3JldA=="}

    def domain_of_another(self, name):
        """A domain that another account has verified."""
        if self.other_key is None:
            made = self.admin("account", "create", "--email", "other@acme.example", "--json")
            self.other_key = made["api_key"]["secret"]
        self.call("POST", "/domains", {"name": name}, self.other_key)

    def claim_id(self, _):
        name = f"d{uuid.uuid4().hex[:10]}.example.org"
        self.domain_of_another(name)
        return {"claim_id": self.post("/domains/claims", {"name": name})["claim"]["id"]}

    def import_id(self, _):
        return {"import_id": self.post("/suppressions/import", {"csv": "email\nimported@example.net\n"})["import"]["id"]}

    def category_opt_out_id(self, _):
        body = {"email": f"o{uuid.uuid4().hex[:10]}@example.net", "category": "newsletter"}
        return {"category_opt_out_id": self.post("/category-opt-outs", body)["category_opt_out"]["id"]}

    def template_id(self, _):
        return {"template_id": self.post("/templates", {"name": "Example", "subject": "x", "html": "x"})["template"]["id"]}

    def event_id(self, _):
        body = {"name": "user.created", "user_id": "u1", "email": "grace@example.net"}
        return {"event_id": self.post("/events", body)["event"]["id"]}

    def webhook_id(self, _):
        return {"webhook_id": self.post("/webhooks", {"url": self.receiver.url, "events": ["email.sent"]})["webhook"]["id"]}

    def delivery_id(self, values):
        webhook = values["webhook_id"]
        self.post(f"/webhooks/{webhook}/test", {"event": "email.sent"})
        path = f"/webhooks/{webhook}/deliveries"
        delivery = self.wait(lambda: [one for one in self.get(path)["deliveries"] if one["status"] != "pending"])
        return {"delivery_id": delivery[0]["id"]}

    def received_email_id(self, _):
        subject = f"Question {uuid.uuid4().hex[:10]}"
        host, port = self.server.ready["mx"].rsplit(":", 1)
        message = (
            f"From: grace@example.net\r\nTo: support@{self.domain}\r\nSubject: {subject}\r\nMIME-Version: 1.0\r\n"
            'Content-Type: multipart/mixed; boundary="b"\r\n\r\n--b\r\nContent-Type: text/plain\r\n\r\nHello\r\n'
            '--b\r\nContent-Type: text/plain; name="a.txt"\r\nContent-Disposition: attachment; filename="a.txt"\r\n\r\nA\r\n--b--\r\n'
        )
        with smtplib.SMTP(host, int(port), timeout=WAIT_S) as smtp:
            smtp.sendmail("grace@example.net", [f"support@{self.domain}"], message)

        def look():
            return [one for one in self.get("/received-emails")["received_emails"] if one["subject"] == subject]

        return {"received_email_id": self.wait(look)[0]["email_id"]}

    def automation_id(self, _):
        body = {"name": "Example", "trigger": {"event": "example.started"}, "steps": [{"type": "delay", "duration": "1d"}]}
        automation = self.post("/automations", body)["automation"]
        self.post(f"/automations/{automation['id']}", {"action": "activate"})
        return {"automation_id": automation["id"]}

    def run_id(self, values):
        self.post("/events", {"name": "example.started", "user_id": uuid.uuid4().hex, "email": "grace@example.net"})
        path = f"/automations/{values['automation_id']}/runs"
        return {"run_id": self.wait(lambda: self.get(path)["runs"])[0]["id"]}

    def affiliate_id(self, _):
        body = {"email": f"p{uuid.uuid4().hex[:10]}@example.org", "first_name": "Partner", "send_invite": False}
        return {"affiliate_id": self.post("/affiliates", body)["affiliate"]["id"]}

    def pending_affiliate_id(self, _):
        body = {"email": f"p{uuid.uuid4().hex[:10]}@example.org", "first_name": "Partner", "status": "pending", "send_invite": False}
        return {"pending_affiliate_id": self.post("/affiliates", body)["affiliate"]["id"]}

    def link_id(self, values):
        links = f"/affiliates/{values['affiliate_id']}/links"
        return {"link_id": self.post(links, {"token": f"t{uuid.uuid4().hex[:10]}"})["link"]["id"]}

    def campaign_id(self, _):
        body = {"name": f"Campaign {uuid.uuid4().hex[:6]}", "commission_type": "percent", "commission_bps": 1000}
        return {"campaign_id": self.post("/affiliate-campaigns", body)["campaign"]["id"]}

    def commission_id(self, _):
        return {"commission_id": self.sale()["id"]}

    def payout_id(self, _):
        """A payout of an approved run, to be paid by hand."""
        partner = self.sale()["affiliate_id"]
        self.admin("affiliate", "partner", "payout-method", partner, "paypal", f"{partner}@example.org")
        run = self.wait(lambda: self.admin("affiliate", "run", "draft", "--json")["run"])
        totals = [f"{currency}={amount}" for currency, amount in run["totals"].items()]
        self.admin("affiliate", "run", "approve", run["id"], "--rev", str(run["rev"]), "--total", *totals)
        return {"payout_id": self.wait(lambda: self.get(f"/affiliate-payouts?affiliate_id={partner}&status=processing")["data"])[0]["id"]}

    def sale(self):
        """The commission of a new partner, whose customer has paid."""
        partner, customer = self.affiliate_id(None)["affiliate_id"], f"cus_{uuid.uuid4().hex[:10]}"
        body = {"affiliate_id": partner, "email": f"{customer}@example.net", "processor_customer_id": customer}
        self.post("/affiliate-referrals", body)
        now, invoice = int(time.time()), f"in_{uuid.uuid4().hex[:10]}"
        lines = {"object": "list", "has_more": False, "data": [{"id": f"il_{invoice}", "amount": 90000, "currency": "usd"}]}
        self.processor_event("invoice.paid", {
            "id": invoice, "object": "invoice", "customer": customer, "currency": "usd", "status": "paid", "created": now,
            "amount_paid": 90000, "total": 90000, "subtotal": 90000, "status_transitions": {"paid_at": now}, "lines": lines,
        })
        path = f"/affiliate-commissions?affiliate_id={partner}"
        return self.wait(lambda: [one for one in self.get(path)["data"] if one["status"] == "earned"])[0]

    def processor_event(self, kind, thing):
        """Posts an event as the payment processor does."""
        now = int(time.time())
        event = {"id": f"evt_{uuid.uuid4().hex}", "object": "event", "type": kind, "created": now, "livemode": False, "data": {"object": thing}}
        body = json.dumps(event)
        signature = hmac.new(PROCESSOR_SECRET.encode(), f"{now}.{body}".encode(), hashlib.sha256).hexdigest()
        url = self.admin("affiliate", "show", "--json")["processor"]["webhook_url"]
        request = urllib.request.Request(self.server.base_url + urllib.parse.urlsplit(url).path, body.encode(), method="POST")
        request.add_header("stripe-signature", f"t={now},v1={signature}")
        urllib.request.urlopen(request, timeout=WAIT_S).read()

    def referral_id(self, _):
        partner = self.affiliate_id(None)["affiliate_id"]
        body = {"affiliate_id": partner, "email": f"c{uuid.uuid4().hex[:10]}@example.net"}
        return {"referral_id": self.post("/affiliate-referrals", body)["referral"]["id"]}


def in_days(days):
    """The time in so many days, to the second (RFC 3339)."""
    time_then = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=days)
    return time_then.strftime("%Y-%m-%dT%H:%M:%SZ")
