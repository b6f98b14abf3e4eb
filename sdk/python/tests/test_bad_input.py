"""Answers that are not the API's, and servers that do not answer: each gives a typed error that says what to do."""

import logging
import os
import shutil
import socket
import ssl
import subprocess
import tempfile
import traceback
import unittest
from pathlib import Path
from unittest import mock

import postrider
from postrider._deadline import Cancellation, Deadline
from postrider._exchange import Request
from postrider._transport import _Connection

from .clients import KEY, AsyncCalls, SyncCalls
from .misbehaving_server import MisbehavingServer, answer, api_error, drip, hang, raw, reset

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n"


class BadInput:
    def fails(self, error_class, *answers, call=lambda client: client.account.get(), **settings):
        """Makes a call against the answers and returns its error, which must not contain the key."""
        settings = {"max_retries": 0, "timeout": 5, **settings}
        with MisbehavingServer(*answers) as server, self.assertRaises(error_class) as caught:
            self.server = server
            self.do(server.url, call, **settings)
        error = caught.exception
        self.assertIs(type(error), error_class)
        for text in (str(error), repr(error), error.message, repr(vars(error))):
            self.assertNotIn(KEY, text)
        if not isinstance(error, postrider.ApiError):
            self.assertGreater(len(error.message), 20, "the message says what to do")
        return error

    def test_nothing_listens(self):
        with self.assertRaises(postrider.ConnectionError) as caught:
            self.do("http://127.0.0.1:9", lambda client: client.account.get(), max_retries=0)
        self.assertEqual(caught.exception.reason, "refused")
        self.assertIsInstance(caught.exception, ConnectionError)

    def test_host_does_not_exist(self):
        with self.assertRaises((postrider.ConnectionError, postrider.TimeoutError)) as caught:
            self.do("https://no-such-host.invalid", lambda client: client.account.get(), max_retries=0, timeout=5)
        self.assertIn(getattr(caught.exception, "reason", "dns"), "dns")

    def test_server_without_tls(self):
        with MisbehavingServer(answer()) as server:
            # Answers plain HTTP to whatever comes.
            server.serve = lambda connection: (
                (connection.recv(10), connection.sendall(b"HTTP/1.1 400 Bad\r\n\r\n"))[0] and False
            )
            with self.assertRaises(postrider.ConnectionError) as caught:
                self.do(server.url.replace("http", "https"), lambda client: client.account.get(), timeout=5)
        self.assertEqual(caught.exception.reason, "tls")

    def test_page_of_a_proxy(self):
        page = b"<html>Blocked by the firewall</html>"
        error = self.fails(postrider.UnexpectedResponseError, answer(403, page, {"content-type": "text/html"}))
        self.assertEqual((error.status, error.content_type), (403, "text/html"))
        self.assertIn("Blocked", error.excerpt)

    def test_page_with_200(self):
        self.fails(
            postrider.UnexpectedResponseError, answer(200, b"<title>Shop</title>", {"content-type": "text/html"})
        )

    def test_page_that_shows_the_request(self):
        page = b"x" * 180 + f"authorization: Bearer {KEY}".encode()
        for status in (200, 403):
            error = self.fails(postrider.UnexpectedResponseError, answer(status, page, {"content-type": "text/plain"}))
            self.assertNotIn(KEY[:8], error.excerpt)

    def test_error_that_shows_the_key(self):
        error = self.fails(postrider.AuthenticationError, api_error(401, "unauthorized", details={"reason": KEY}))
        self.assertEqual(error.reason, "[API key]")

    def test_413_of_a_proxy(self):
        error = self.fails(
            postrider.UnexpectedResponseError, answer(413, b"<html>413</html>", {"content-type": "text/html"})
        )
        self.assertIn("proxy", error.message)

    def test_413_before_the_body_was_read(self):
        head = b"HTTP/1.1 413 Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
        with MisbehavingServer(answer()) as server:
            server.serve = lambda connection: (
                (connection.recv(10), connection.sendall(head), server.closing.wait(0.2))[0] and False
            )
            with self.assertRaises((postrider.UnexpectedResponseError, postrider.ConnectionError)):
                params = {"to": "a@example.net", "text": "x" * 20_000_000}
                self.do(server.url, lambda client: client.emails.send(params), max_retries=0, timeout=10)

    def test_redirect(self):
        error = self.fails(postrider.UnexpectedResponseError, answer(301, b"", {"location": "https://example.com/"}))
        self.assertIn("example.com", error.message)
        self.assertEqual(len(self.server.requests), 1)

    def test_empty_200(self):
        error = self.fails(postrider.UnexpectedResponseError, answer(200, b""))
        self.assertIn("empty", error.message)

    def test_json_of_another_kind(self):
        for body in (b"[1]", b'"x"', b"null", b"[" * 100_000, b"\xff\xfe", b"{"):
            self.fails(postrider.UnexpectedResponseError, answer(200, body))

    def test_error_of_another_kind(self):
        for body in ({"error": "no"}, {"message": "no"}, [1], {"error": {"message": 1}}):
            self.assertEqual(self.fails(postrider.UnexpectedResponseError, answer(422, body)).status, 422)

    def test_answer_that_is_not_http(self):
        self.fails(postrider.UnexpectedResponseError, raw(b"SSH-2.0-OpenSSH_9.2\r\n\r\n\r\n"))

    def test_interim_answers_are_skipped(self):
        hints, final = b"HTTP/1.1 103 Early Hints\r\nlink: <x>\r\n\r\n", answer(200, {"id": "msg_1"})
        whole = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 14\r\n\r\n" + b'{"id":"msg_1"}'
        answers = (
            lambda connection, server: raw(hints, False)(connection, server) and final(connection, server),
            raw(b"HTTP/1.1 100 Continue\r\n\r\n" + 2 * hints + whole),  # All at once.
        )
        for one in answers:
            with MisbehavingServer(one) as server:
                sent = self.do(server.url, lambda client: client.emails.send({"to": "a@example.net"}))
            self.assertEqual((sent["id"], len(server.requests)), ("msg_1", 1))

    def test_interim_answers_do_not_mix_up_calls(self):
        def call(client):
            try:
                return client.account.get()
            except postrider.UnexpectedResponseError:
                return client.account.get()

        async def async_call(client):
            try:
                return await client.account.get()
            except postrider.UnexpectedResponseError:
                return await client.account.get()

        late = answer(200, {"account": "first"})
        for interim in (b"HTTP/1.1 101 Switching Protocols\r\n\r\n", 100 * b"HTTP/1.1 103 Early Hints\r\n\r\n"):
            hints = lambda connection, server: (raw(interim)(connection, server), late(connection, server))[1]  # noqa: E731
            with MisbehavingServer(hints, answer(200, {"account": "second"})) as server:
                answered = self.do(server.url, async_call if isinstance(self, AsyncCalls) else call)
            self.assertEqual(answered["account"], ["second", "first"][len(server.requests) == 1])

    def test_too_many_headers(self):
        head = b"HTTP/1.1 200 OK\r\n" + b"".join(b"x-%d: 1\r\n" % n for n in range(100_000)) + b"\r\n"
        with (
            MisbehavingServer(raw(head)) as server,
            self.assertRaises((postrider.UnexpectedResponseError, postrider.ConnectionError)),
        ):
            self.do(server.url, lambda client: client.account.get(), max_retries=0)

    def test_no_answer(self):
        error = self.fails(postrider.TimeoutError, hang(), timeout=0.2)
        self.assertIsInstance(error, TimeoutError)
        self.assertIn("0.2", error.message)

    def test_slow_headers(self):
        self.fails(postrider.TimeoutError, drip(b"HTTP/1.1 200 OK\r\n" + b"x: " + b"y" * 1000, 0.02), timeout=0.3)

    def test_slow_body(self):
        self.fails(postrider.TimeoutError, hang(HEAD + b"{"), timeout=0.2)
        self.fails(postrider.TimeoutError, drip(HEAD + b" " * 100, 0.02), timeout=0.3)

    def test_slow_chunks(self):
        head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
        self.fails(postrider.TimeoutError, hang(head + b"5\r\n{"), timeout=0.2)

    def test_connection_reset(self):
        error = self.fails(postrider.ConnectionError, reset())
        self.assertEqual(error.reason, "reset")

    def test_connection_reset_in_the_body(self):
        for behaviour in (reset(HEAD + b"{"), raw(HEAD + b"{")):
            error = self.fails(postrider.UnexpectedResponseError, behaviour)
            self.assertEqual(error.status, 200)
        chunked = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{\r\n"
        self.fails(postrider.UnexpectedResponseError, raw(chunked))

    def test_body_cut_is_retried(self):
        with MisbehavingServer(raw(HEAD + b"{"), answer(200, {"account": {}})) as server:
            self.assertEqual(self.do(server.url, lambda client: client.account.get()), {"account": {}})

    def test_huge_error(self):
        error = self.fails(postrider.UnexpectedResponseError, answer(400, b"x" * 10_000_000))
        self.assertEqual(error.excerpt, "x" * 200)

    def test_huge_answer(self):
        module = "postrider._async" if isinstance(self, AsyncCalls) else "postrider._transport"
        with mock.patch(module + ".ANSWER_BYTES_MAX", 1000), mock.patch("postrider._exchange.ANSWER_BYTES_MAX", 1000):
            error = self.fails(postrider.UnexpectedResponseError, answer(200, {"x": "y" * 5000}), max_retries=2)
        self.assertIn("larger", error.message)
        self.assertEqual(len(self.server.requests), 1)

    def test_unknown_fields_and_enum_values(self):
        email = {"email": {"id": "msg_1", "status": "teleported", "a_new_field": {"x": [1]}}}
        with MisbehavingServer(answer(200, email)) as server:
            self.assertEqual(self.do(server.url, lambda client: client.emails.get("msg_1")), email)

    def test_unknown_error_codes(self):
        error = self.fails(postrider.ApiError, api_error(418, "teapot", details={"x": 1}))
        self.assertEqual((error.status, error.code, error.details), (418, "teapot", {"x": 1}))
        self.fails(postrider.ServerError, api_error(599, "melted"))

    def test_header_values_cannot_add_headers(self):
        for options in ({"idempotency_key": "a\r\nx-evil: 1"}, {"extra_headers": {"x": "a\nb"}}, {"extra_headers": {"x\n": "a"}},
                        {"if_match": "\r\n"}, {"idempotency_key": "\u2028"}):  # fmt: skip
            self.fails(
                postrider.ConfigurationError, answer(), call=lambda client: client.emails.send({"to": "a@b"}, **options)
            )
            self.assertEqual(self.server.requests, [])

    def test_headers_that_frame_the_request(self):
        for name in (
            "Transfer-Encoding",
            "content-length",
            "HOST",
            "Connection",
            "Expect",
            "TE",
            "Proxy-Authorization",
        ):
            call = lambda client: client.emails.send({"to": "a@b"}, extra_headers={name: "1"})  # noqa: B023, E731
            self.fails(postrider.ConfigurationError, answer(), call=call)
            self.assertEqual(self.server.requests, [])

    def test_ids_that_lead_elsewhere(self):
        for bad in ("", ".", "..", None, 7):
            self.fails(postrider.ConfigurationError, answer(), call=lambda client: client.emails.get(bad))
            self.assertEqual(self.server.requests, [])

    def test_params_that_are_not_json(self):
        for bad in (object(), float("nan"), {1, 2}):
            self.fails(postrider.ConfigurationError, answer(), call=lambda client: client.emails.send({"to": bad}))

    def test_log_and_repr_have_no_key(self):
        with MisbehavingServer(
            api_error(503, "service_unavailable"), answer(200, {"warnings": ["`x` is unknown"]})
        ) as server:
            with self.assertLogs("postrider", logging.DEBUG) as log:
                self.do(server.url, lambda client: client.account.get())
        self.assertIn("`x` is unknown", "".join(log.output))
        texts = [
            repr(self.client),
            str(self.client),
            repr(vars(self.client)),
            repr(vars(self.client._core)),
            *log.output,
        ]
        self.assertFalse([text for text in texts if KEY in text])


class SyncBadInput(BadInput, SyncCalls, unittest.TestCase):
    def test_variables_of_an_upload_have_no_key(self):
        """Reports of errors show the variables of each function, for example those of Django and Sentry."""
        here, there = socket.socketpair()
        with here, there, postrider.Postrider(KEY, "http://localhost") as client:
            client._transport._keep(_Connection(here, lambda: 1))
            try:  # assertRaises deletes the variables.
                client._transport.open(Request("GET", "/account", {}, None), Deadline(0), Cancellation())
                self.fail("nothing was raised")
            except postrider.TimeoutError as error:
                report = traceback.TracebackException.from_exception(error, capture_locals=True)
                text = "".join(report.format())
        self.assertIn("in send\n", text)
        self.assertNotIn(KEY, text)

    def test_call_can_be_cancelled_from_another_thread(self):
        cancellation = postrider.Cancellation()

        def cancel(connection, server):
            cancellation.cancel()
            server.closing.wait(20)

        for behaviour in (cancel, lambda connection, server: (connection.sendall(HEAD), cancel(connection, server))):
            cancellation = postrider.Cancellation()
            self.fails(
                postrider.CancelledError, behaviour, call=lambda client: client.account.get(cancellation=cancellation)
            )
        self.fails(
            postrider.CancelledError, answer(), call=lambda client: client.account.get(cancellation=cancellation)
        )

    def test_pause_can_be_cancelled(self):
        cancellation = postrider.Cancellation()
        with MisbehavingServer(api_error(503, "service_unavailable", {"retry-after": "20"})) as server:
            client = postrider.Postrider(KEY, server.url)
            self.addCleanup(client.close)
            wait = client._core._wait
            client._core._wait = lambda *arguments: cancellation.cancel() or wait(*arguments)
            with self.assertRaises(postrider.CancelledError):
                client.account.get(cancellation=cancellation)


class AsyncBadInput(BadInput, AsyncCalls, unittest.TestCase):
    pass


class Settings(unittest.TestCase):
    def refused(self, *arguments, **keywords):
        with mock.patch.dict(os.environ, clear=True), self.assertRaises(postrider.ConfigurationError) as caught:
            postrider.Postrider(*arguments, **keywords)
        self.assertIsInstance(caught.exception, ValueError)
        self.assertNotIn("secret", str(caught.exception))
        return str(caught.exception)

    def test_missing_settings(self):
        self.assertIn("POSTRIDER_API_KEY", self.refused(None, "https://example.com"))
        self.assertIn("POSTRIDER_API_KEY", self.refused("", "https://example.com"))
        self.assertIn("POSTRIDER_BASE_URL", self.refused("rnl_x"))

    def test_keys_that_are_none(self):
        for key in ("rnl_secret\nx-evil: 1", "rnl_secret\r", " rnl_secret", "rnl_secret\u00e9", "rnl_secret\x7f"):
            self.refused(key, "https://example.com")

    def test_base_urls_that_are_none(self):
        for url in ("example.com", "ftp://example.com", "https://", "https://user:secret@example.com", "https://a b", "https://x:99999",
                    "https://example.com?x=1", "https://example.com/#x", "https://exa\nmple.com", "http://192.0.2.1", "https://[::1"):  # fmt: skip
            self.assertIn("https://", self.refused("rnl_x", url))

    def test_base_urls(self):
        for url in ("http://127.0.0.1:8025", "http://[::1]:8025", "http://localhost", "https://example.com/api/"):
            postrider.Postrider("rnl_x", url)
        postrider.Postrider("rnl_x", "http://192.0.2.1", allow_insecure_http=True)

    def test_environment(self):
        with mock.patch.dict(os.environ, {"POSTRIDER_API_KEY": "rnl_x", "POSTRIDER_BASE_URL": "https://example.com"}):
            self.assertEqual(repr(postrider.Postrider()), "Postrider(base_url='https://example.com')")

    def test_numbers(self):
        for settings in (
            {"timeout": -1},
            {"timeout": "1"},
            {"max_retries": None, "timeout": float("nan")},
            {"max_retries": True},
        ):
            self.refused("rnl_x", "https://example.com", **settings)


class Tls:
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.certificate, key = Path(cls.folder.name, "cert.pem"), Path(cls.folder.name, "key.pem")
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
             "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(cls.certificate)],
            check=True, capture_output=True,
        )  # fmt: skip
        cls.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        cls.context.load_cert_chain(cls.certificate, key)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_certificate_that_is_not_trusted(self):
        with (
            MisbehavingServer(answer(), tls=self.context) as server,
            self.assertRaises(postrider.ConnectionError) as caught,
        ):
            self.do(server.url, lambda client: client.account.get())
        self.assertEqual((caught.exception.reason, self.pauses), ("tls", []))
        self.assertIn("certificate", caught.exception.message)

    def test_calls_over_tls_reuse_the_connection(self):
        def calls(client):
            client.emails.send({"to": "a@example.net", "text": "x" * 3_000_000})
            return [client.account.get() for _ in range(3)]

        async def async_calls(client):
            await client.emails.send({"to": "a@example.net", "text": "x" * 3_000_000})
            return [await client.account.get() for _ in range(3)]

        with MisbehavingServer(answer(200, {"x": "y" * 1_000_000}), tls=self.context) as server:
            with mock.patch.dict(os.environ, {"SSL_CERT_FILE": str(self.certificate)}):
                self.do(server.url, async_calls if isinstance(self, AsyncCalls) else calls)
        self.assertEqual(server.connections, 1)
        self.assertEqual(len(server.requests[0].json["text"]), 3_000_000)

    def test_name_that_is_not_in_the_certificate(self):
        with (
            MisbehavingServer(answer(), tls=self.context) as server,
            self.assertRaises(postrider.ConnectionError) as caught,
        ):
            with mock.patch.dict(os.environ, {"SSL_CERT_FILE": str(self.certificate)}):
                self.do(server.url.replace("localhost", "127.0.0.1"), lambda client: client.account.get())
        self.assertEqual(caught.exception.reason, "tls")


@unittest.skipUnless(shutil.which("openssl"), "openssl is not installed")
class SyncTls(Tls, SyncCalls, unittest.TestCase):
    pass


@unittest.skipUnless(shutil.which("openssl"), "openssl is not installed")
class AsyncTls(Tls, AsyncCalls, unittest.TestCase):
    pass


class Proxies:
    def test_requests_go_through_the_proxy(self):
        with MisbehavingServer(answer(200, {"account": {}})) as proxy:
            with mock.patch.dict(os.environ, {"http_proxy": f"http://user:word@127.0.0.1:{proxy.port}"}):
                self.do("http://mail.test/api", lambda client: client.account.get(), allow_insecure_http=True)
        request = proxy.requests[0]
        self.assertEqual((request.target, request.headers["host"]), ("http://mail.test/api/account", "mail.test"))
        self.assertEqual(request.headers["proxy-authorization"], "Basic dXNlcjp3b3Jk")

    def test_nothing_shows_the_credentials_of_the_proxy(self):
        word = "pa55word"
        for address in (
            f"http://user:{word}@127.0.0.1:9",
            f"ftp://user:{word}@127.0.0.1:9",
            f"http://user:{word}/@127.0.0.1:9",
        ):
            with mock.patch.dict(os.environ, {"http_proxy": address, "https_proxy": address}):
                for url in ("http://mail.test", "https://mail.test"):
                    try:
                        self.do(url, lambda client: client.account.get(), allow_insecure_http=True, max_retries=0)
                        self.fail("nothing was raised")
                    except postrider.PostriderError as error:
                        frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
                        ours = [frame for frame in frames if "/src/postrider/" in frame.f_code.co_filename]
                        self.assertTrue(ours)
                        shown = [str(error), *(repr(value) for frame in ours for value in frame.f_locals.values())]
                    self.assertFalse([text for text in shown if word in text or "dXNlcj" in text])

    def test_no_proxy_for_this_machine(self):
        with MisbehavingServer(answer(200, {"account": {}})) as server:
            with mock.patch.dict(os.environ, {"http_proxy": "http://127.0.0.1:9"}):
                self.do(server.url, lambda client: client.account.get())

    def test_proxy_that_refuses_a_tunnel(self):
        with MisbehavingServer(answer(407, b"")) as proxy, self.assertRaises(postrider.ConnectionError) as caught:
            with mock.patch.dict(os.environ, {"https_proxy": f"127.0.0.1:{proxy.port}"}):
                self.do("https://mail.test", lambda client: client.account.get(), max_retries=0)
        self.assertEqual(proxy.requests[0].target, "mail.test:443")
        self.assertIn("proxy", caught.exception.message)
        self.assertNotIn("authorization", proxy.requests[0].headers)


class SyncProxies(Proxies, SyncCalls, unittest.TestCase):
    pass


class AsyncProxies(Proxies, AsyncCalls, unittest.TestCase):
    pass
