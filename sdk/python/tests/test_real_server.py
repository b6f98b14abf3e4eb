"""The client with a real server: sending, pages, the event stream, webhooks."""

import http.server
import itertools
import queue
import threading
import unittest

import postrider

from .dev_server import DevServer


class RealServer(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = cls.enter(DevServer())
        cls.client = cls.enter(postrider.Postrider(cls.server.api_key, cls.server.url))

    @classmethod
    def enter(cls, context):
        entered = context.__enter__()
        cls.addClassCleanup(context.__exit__, None, None, None)
        return entered

    def send(self, subject, **fields):
        email = {
            "from": f"Ada <ada@{self.server.domain}>",
            "to": "grace@example.net",
            "subject": subject,
            "text": "Hello",
            **fields,
        }
        return self.client.emails.send(email)["id"]

    def test_send_with_attachment(self):
        sent = self.send(
            "attached1",
            attachments=[{"name": "a.txt", "data": b"attached", "content_type": "text/plain"}],
            tags={"flow": "welcome"},
        )
        message = self.server.message("attached1")
        self.assertEqual(message["attachments"][0]["filename"], "a.txt")
        email = self.client.emails.get(sent)["email"]
        self.assertEqual(email["tags"], [{"name": "flow", "value": "welcome"}])
        self.assertIn(b"attached1", self.client.emails.raw(sent))
        self.assertRegex(self.client.last_response.request_id, "^req_")

    def test_idempotency_key(self):
        email = {"from": f"ada@{self.server.domain}", "to": "grace@example.net", "subject": "once", "text": "Hello"}
        first = self.client.emails.send(email, idempotency_key="order-7")
        self.assertEqual(self.client.emails.send(email, idempotency_key="order-7"), first)
        self.assertEqual(self.client.last_response.headers["idempotent-replayed"], "true")
        with self.assertRaises(postrider.IdempotencyConflictError):
            self.client.emails.send({**email, "text": "Other"}, idempotency_key="order-7")

    def test_pages(self):
        ids = {self.send("paged", tags={"run": "pages"}) for _ in range(5)}
        self.assertEqual({email["id"] for email in self.client.emails.list(limit=2, tag=["run:pages"])}, ids)

    def test_errors(self):
        with self.assertRaises(postrider.ValidationError) as caught:
            self.send("x", to="nobody")
        self.assertIn("to", caught.exception.fields)
        with self.assertRaises(postrider.NotFoundError):
            self.client.emails.get("msg_0")
        with self.assertRaises(postrider.AuthenticationError):
            with postrider.Postrider("rnl_unknown", self.server.url) as stranger:
                stranger.account.get()

    def test_event_stream(self):
        page = self.client.webhook_events.list(order="asc", limit=100)
        while page["has_more"]:
            page = page.next_page()
        stream = self.client.webhook_events.stream(types=["email.delivered"], after=page["next_cursor"])
        sent = self.send("streamed")
        events = itertools.islice(stream, 10)
        self.assertTrue(any(event["data"]["email_id"] == sent and event["cursor"] for event in events))
        stream.close()

    def test_webhook(self):
        received = queue.Queue()

        class Receiver(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                received.put((self.rfile.read(int(self.headers["content-length"])), self.headers))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_):
                pass

        receiver = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
        threading.Thread(target=receiver.serve_forever, args=(0.02,), daemon=True).start()
        self.addCleanup(receiver.server_close)
        self.addCleanup(receiver.shutdown)
        created = self.client.webhooks.create(url=f"http://127.0.0.1:{receiver.server_port}/", events=["email.bounced"])
        self.client.webhooks.test(created["webhook"]["id"], {"event": "email.bounced"})
        body, headers = received.get(timeout=30)
        event = postrider.webhooks.construct_event(body, headers, created["secret"])
        self.assertEqual(event["type"], "email.bounced")
        with self.assertRaises(postrider.SignatureError):
            postrider.webhooks.construct_event(body + b" ", headers, created["secret"])
