"""The bridge to Django, with Django's own classes."""

import importlib.util
import json
import unittest
from email.mime.base import MIMEBase
from email.mime.image import MIMEImage
from email.mime.text import MIMEText
from unittest import mock

import postrider

from .clients import KEY
from .dev_server import DevServer
from .misbehaving_server import MisbehavingServer, answer, api_error

if importlib.util.find_spec("django") is None:
    raise unittest.SkipTest("Django is not installed")

import django.conf  # noqa: E402

SECRET = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
if not django.conf.settings.configured:
    django.conf.settings.configure(
        EMAIL_BACKEND="postrider.django.EmailBackend", POSTRIDER_API_KEY=KEY, POSTRIDER_BASE_URL="http://127.0.0.1:9",
        POSTRIDER_WEBHOOK_SECRET=SECRET, ALLOWED_HOSTS=["*"], DEFAULT_CHARSET="utf-8",
    )  # fmt: skip

from django.core import mail  # noqa: E402
from django.test import RequestFactory, override_settings  # noqa: E402

from postrider.django import EmailBackend, email_params, webhook_view  # noqa: E402

SENT = answer(200, {"id": "msg_1", "status": "sent"})
PNG = bytes.fromhex("89504e470d0a1a0a")


def full_message(domain="example.com"):
    message = mail.EmailMultiAlternatives(
        "Welcome", "Hello", f"Ada <ada@{domain}>", ["grace@example.net"], cc=["c@example.net"], bcc=["b@example.net"],
        reply_to=["r@example.com"], headers={"X-Ref": "7", "Idempotency-Key": "order-7"},
    )  # fmt: skip
    message.attach_alternative('<p>Hello <img src="cid:logo"></p>', "text/html")
    message.attach("terms.txt", "Terms", "text/plain")
    image = MIMEImage(PNG, "png")
    image.add_header("Content-ID", "<logo>")
    image.add_header("Content-Disposition", "inline", filename="logo.png")
    message.attach(image)
    message.tags, message.metadata, message.esp_extra = ["welcome"], {"user": 7}, {"category": "transactional"}
    return message


class Params(unittest.TestCase):
    def test_all_fields(self):
        params, key = email_params(full_message())
        self.assertEqual(key, "order-7")
        self.assertEqual(params, {
            "from": "Ada <ada@example.com>", "to": ["grace@example.net"], "cc": ["c@example.net"], "bcc": ["b@example.net"],
            "reply_to": ["r@example.com"], "subject": "Welcome", "text": "Hello", "html": '<p>Hello <img src="cid:logo"></p>',
            "headers": {"X-Ref": "7"}, "category": "transactional",
            "tags": [{"name": "welcome", "value": "true"}, {"name": "user", "value": "7"}],
            "attachments": [
                {"name": "terms.txt", "content_type": "text/plain", "data": b"Terms"},
                {"name": "logo.png", "content_type": "image/png", "data": PNG, "content_id": "logo"},
            ],
        })  # fmt: skip

    def test_little(self):
        params, key = email_params(mail.EmailMessage("x", "y", "a@example.com", ["b@example.net"]))
        self.assertEqual(
            (params, key), ({"from": "a@example.com", "to": ["b@example.net"], "subject": "x", "text": "y"}, None)
        )

    def test_html_only(self):
        message = mail.EmailMessage("x", "<p>", "a@example.com", ["b@example.net"])
        message.content_subtype = "html"
        params, _ = email_params(message)
        self.assertEqual((params["html"], "text" in params), ("<p>", False))

    def test_headers_that_replace_fields(self):
        headers = {"From": "Other <o@example.com>", "reply-to": "r@example.com"}
        params, _ = email_params(mail.EmailMessage("x", "y", "a@example.com", ["b@example.net"], headers=headers))
        self.assertEqual(
            (params["from"], params["reply_to"], "headers" in params),
            ("Other <o@example.com>", ["r@example.com"], False),
        )

    def test_headers_of_the_server_are_left_out(self):
        headers = {"Message-ID": "<a@b>", "date": "Thu, 01 Jan 2026 10:00:00 +0000", "To": "All <all@example.net>",
                   "CC": "c@example.net", "Subject": "z", "Content-Type": "text/x", "X-Ref": "7"}  # fmt: skip
        message = mail.EmailMessage("x", "y", "a@example.com", ["b@example.net"], headers=headers)
        params, _ = email_params(message)
        self.assertEqual((params["headers"], params["to"], params["subject"]), ({"X-Ref": "7"}, ["b@example.net"], "x"))
        with DevServer() as server, override_settings(POSTRIDER_BASE_URL=server.url, POSTRIDER_API_KEY=server.api_key):
            message.from_email = f"a@{server.domain}"
            self.assertEqual(message.send(), 1)

    def test_attachments(self):
        message = mail.EmailMessage("x", "y", "a@example.com", ["b@example.net"])
        message.attach("a.pdf", b"%PDF")
        message.attachments.append((None, b"\x00", None))
        message.attach(
            "mail.eml", mail.EmailMessage("inner", "z", "a@example.com", ["b@example.net"]), "message/rfc822"
        )
        attachments = email_params(message)[0]["attachments"]
        self.assertEqual([(one["name"], one["content_type"]) for one in attachments],
                         [("a.pdf", "application/pdf"), ("attachment-2.bin", "application/octet-stream"), ("mail.eml", "message/rfc822")])  # fmt: skip
        self.assertIn(b"Subject: inner", attachments[2]["data"])

    def test_content_types_keep_their_parameters(self):
        message = mail.EmailMessage("x", "y", "a@example.com", ["b@example.net"])
        meeting = MIMEBase("text", "calendar", method="REQUEST", name=("utf-8", "", "Größe.ics"))
        meeting.set_payload("BEGIN:VCALENDAR")
        message.attach(meeting)
        message.attach(MIMEText("grüße", "plain", "iso-8859-1"))
        message.attachments.append((None, "BEGIN:VCALENDAR", "text/calendar; method=REQUEST"))
        video = MIMEBase("video", "mp4", codecs="avc1.42E01E, mp4a.40.2", charset="", foo=None, level="3")
        video.add_header("Content-Disposition", "attachment", filename="a.mp4")
        video.set_payload("x")
        message.attach(video)
        attachments = email_params(message)[0]["attachments"]
        self.assertEqual(
            [(one["name"], one["content_type"]) for one in attachments],
            [("Größe.ics", "text/calendar; method=REQUEST"), ("attachment-2.txt", "text/plain; charset=iso-8859-1"),
             ("attachment-3.ics", "text/calendar; method=REQUEST"), ("a.mp4", "video/mp4; level=3")],
        )  # fmt: skip
        self.assertEqual(attachments[1]["data"], "grüße".encode("iso-8859-1"))

    def test_content_types_of_tuples_lose_the_parameters_that_the_api_refuses(self):
        message = mail.EmailMessage("x", "y", "a@example.com", ["b@example.net"])
        message.attach("a b.pdf", b"%PDF", 'application/pdf; name="a b.pdf"')
        message.attach("a.mp4", b"x", 'video/mp4; codecs="avc1.42E01E, mp4a.40.2"; level=3')
        attachments = email_params(message)[0]["attachments"]
        self.assertEqual([one["content_type"] for one in attachments], ["application/pdf", "video/mp4; level=3"])

    def test_malformed_content_types_are_left_to_the_api(self):
        message = mail.EmailMessage("x", "y", "a@example.com", ["b@example.net"])
        message.attachments += [("a.pdf", b"%PDF", "a/b/c"), ("b.pdf", b"%PDF", "pdf; name=b.pdf")]
        attachments = email_params(message)[0]["attachments"]
        self.assertEqual([one["content_type"] for one in attachments], ["a/b/c", "pdf"])

    def test_idempotency_key_as_attribute_and_tags_as_dict(self):
        message = mail.EmailMessage("x", "y", "a@example.com", ["b@example.net"])
        message.idempotency_key, message.tags = "k", {"flow": "a"}
        params, key = email_params(message)
        self.assertEqual((key, params["tags"]), ("k", [{"name": "flow", "value": "a"}]))

    def test_alternatives_that_cannot_be_sent(self):
        message = mail.EmailMultiAlternatives("x", "y", "a@example.com", ["b@example.net"])
        message.attach_alternative("BEGIN:VCALENDAR", "text/calendar")
        with self.assertRaises(postrider.ConfigurationError):
            email_params(message)


class Backend(unittest.TestCase):
    def test_send(self):
        with MisbehavingServer(SENT) as server, override_settings(POSTRIDER_BASE_URL=server.url):
            message = full_message()
            self.assertEqual(message.send(), 1)
            self.assertEqual(message.postrider_id, "msg_1")
            self.assertEqual(
                mail.send_mail("x", "y", "a@example.com", ["b@example.net"], auth_user="u", auth_password="p"), 1
            )
            self.assertEqual(mail.EmailMessage("x", "y").send(), 0)
        self.assertEqual([request.headers["idempotency-key"] for request in server.requests][:1], ["order-7"])
        self.assertEqual(server.requests[0].headers["authorization"], f"Bearer {KEY}")

    def test_connection_is_reused(self):
        with MisbehavingServer(SENT) as server, override_settings(POSTRIDER_BASE_URL=server.url):
            with mail.get_connection() as connection:
                for _ in range(3):
                    mail.EmailMessage("x", "y", "a@example.com", ["b@example.net"], connection=connection).send()
            self.assertEqual(server.connections, 1)
            self.assertIsNone(connection._client)

    @unittest.skipUnless(hasattr(mail, "mailers"), "this Django has no MAILERS")
    def test_mailers(self):
        with MisbehavingServer(SENT) as server:
            mailer = {"BACKEND": "postrider.django.EmailBackend", "OPTIONS": {"base_url": server.url}}
            wrong = {**mailer, "OPTIONS": {"colour": "red"}}
            with override_settings(MAILERS={"default": mailer, "wrong": wrong}):
                message = mail.EmailMessage("x", "y", "a@example.com", ["b@example.net"])
                self.assertEqual((message.send(using="default"), message.postrider_id), (1, "msg_1"))
                with self.assertRaises(mail.InvalidMailer):
                    message.send(using="wrong")

    def test_failures(self):
        message = mail.EmailMessage("x", "y", "a@example.com", ["b@example.net"])
        with (
            MisbehavingServer(api_error(422, "validation_error")) as server,
            override_settings(POSTRIDER_BASE_URL=server.url),
        ):
            with self.assertRaises(postrider.ValidationError):
                message.send()
            message.connection = None
            self.assertEqual(message.send(fail_silently=True), 0)
            message.connection = None
        with mock.patch.dict("os.environ", clear=True), override_settings(POSTRIDER_API_KEY=None):
            with self.assertRaises(postrider.ConfigurationError):
                message.send()
            self.assertEqual(mail.get_connection(fail_silently=True).send_messages([message]), 0)

    def test_unconfirmed_send(self):
        message = mail.EmailMessage("x", "y", "a@example.com", ["b@example.net"])
        failure = api_error(504, "send_unconfirmed", details={"email_id": "msg_7"})
        with MisbehavingServer(failure) as server, override_settings(POSTRIDER_BASE_URL=server.url):
            with self.assertRaises(postrider.SendUnconfirmedError):
                message.send()
        self.assertEqual(message.postrider_id, "msg_7")

    def test_some_of_several_fail(self):
        messages = [mail.EmailMessage("x", "y", "a@example.com", ["b@example.net"]) for _ in range(3)]
        with MisbehavingServer(SENT, api_error(422, "validation_error"), SENT) as server:
            self.assertEqual(EmailBackend(fail_silently=True, base_url=server.url).send_messages(messages), 2)

    def test_real_server(self):
        with DevServer() as server, override_settings(POSTRIDER_BASE_URL=server.url, POSTRIDER_API_KEY=server.api_key):
            first, second = full_message(server.domain), full_message(server.domain)
            self.assertEqual((first.send(), second.send()), (1, 1))
            self.assertRegex(first.postrider_id, "^msg_")
            self.assertEqual(second.postrider_id, first.postrider_id, "the idempotency key is the same")
            message = server.message("Welcome")
            self.assertEqual(message["subject"], "Welcome")
            self.assertEqual([one["filename"] for one in message["attachments"]], ["terms.txt", "logo.png"])
            with postrider.Postrider(server.api_key, server.url) as client:
                email = client.emails.get(first.postrider_id)["email"]
            self.assertEqual(email["tags"], [{"name": "welcome", "value": "true"}, {"name": "user", "value": "7"}])
            self.assertEqual(email["headers"]["X-Ref"], "7")


class WebhookView(unittest.TestCase):
    def post(self, view, body, headers):
        # Django's name of a header in the environment of a request.
        environment = {"HTTP_" + name.upper().replace("-", "_"): value for name, value in headers.items()}
        return view(RequestFactory().post("/hooks", body, content_type="application/json", **environment))

    def test_webhooks(self):
        events = []
        view = webhook_view(lambda request, event: events.append(event))
        body = json.dumps({"type": "email.sent", "created_at": "2026", "data": {}}).encode()
        headers = postrider.webhooks.generate_test_header(body, SECRET)
        self.assertEqual(self.post(view, body, headers).status_code, 204)
        self.assertEqual(events[0]["type"], "email.sent")
        self.assertEqual(self.post(view, body + b" ", headers).status_code, 401)
        self.assertEqual(view(RequestFactory().get("/hooks")).status_code, 405)
        self.assertTrue(view.csrf_exempt)
