"""Requests as the API wants them: paths, queries, bodies, headers; pages; errors by code; connections."""

import asyncio
import copy
import datetime
import json
import os
import pickle
import sys
import threading
import unittest
from pathlib import Path
from unittest import mock

import postrider

from .clients import KEY, AsyncCalls, SyncCalls
from .misbehaving_server import MisbehavingServer, answer, api_error


class Requests:
    def request(self, call, body=None, headers=None):
        """Makes a call and returns the request that the server received."""
        with MisbehavingServer(answer(200, {} if body is None else body, headers)) as server:
            self.result = self.do(server.url, call)
        return server.requests[0]

    def test_headers(self):
        request = self.request(lambda client: client.account.get())
        self.assertEqual((request.method, request.target), ("GET", "/account"))
        self.assertEqual(request.headers["authorization"], f"Bearer {KEY}")
        self.assertEqual(request.headers["user-agent"], f"postrider-python/{postrider.__version__}")
        self.assertEqual(request.headers["accept"], "application/json")
        self.assertRegex(request.headers["service-version"], r"^20\d\d-\d\d-\d\d$")
        self.assertNotIn("idempotency-key", request.headers)
        self.assertNotIn("content-type", request.headers)

    def test_headers_of_the_caller(self):
        headers = {"Accept": "text/html", "USER-AGENT": "shop/1.0", "Service-Version": "1", "authorization": "no", "X-Own": "1",
                   "accept-encoding": "gzip", "Content-Type": "text/x"}  # fmt: skip
        sent = self.request(lambda client: client.emails.send({"to": "a@b"}, extra_headers=headers)).headers
        self.assertEqual((sent["accept"], sent["content-type"]), ("application/json",) * 2)
        self.assertEqual(sent["user-agent"], f"postrider-python/{postrider.__version__} shop/1.0")
        self.assertRegex(sent["service-version"], "^20")
        self.assertEqual(
            (sent["authorization"], sent["x-own"], sent["accept-encoding"]), (f"Bearer {KEY}", "1", "identity")
        )

    def test_body(self):
        time = datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.timezone(datetime.timedelta(hours=1)))
        attachment = {"name": "a.txt", "data": b"\x00\xff"}
        params = {
            "to": ["a@example.net"],
            "subject": "Gr\u00fc\u00dfe \ud800",
            "scheduled_at": time,
            "attachments": [attachment],
            "headers": {"X-Ref": "a_b"},
        }
        request = self.request(lambda client: client.emails.send(params))
        self.assertEqual(request.headers["content-type"], "application/json")
        self.assertEqual(
            request.json,
            {**params, "scheduled_at": "2026-01-02T02:04:05Z", "attachments": [{"name": "a.txt", "data": "AP8="}]},
        )

    def test_bytes_are_for_attachments_only(self):
        for data in (b"\x00\xff", bytearray(b"\x00\xff"), memoryview(b"\x00\xff")):
            attachments = ({"name": "a.txt", "data": data}, {"name": "b.txt", "data": "AA=="})
            request = self.request(lambda client: client.emails.send({"attachments": attachments}))
            self.assertEqual([one["data"] for one in request.json["attachments"]], ["AP8=", "AA=="])
            self.assertEqual(attachments[0]["data"], data)
            for call in (
                lambda client: client.emails.send({"html": data}),
                lambda client: client.emails.send({"attachments": [{"name": data, "data": "AA=="}]}),
                lambda client: client.emails.send({"variables": {"data": data}}),
                lambda client: client.emails.send_batch({"emails": [{"text": data}]}),
                lambda client: client.emails.list({"q": data}),
            ):
                with self.assertRaisesRegex(postrider.ConfigurationError, "attachment"):
                    self.do("http://127.0.0.1:9", call)

    def test_the_api_has_one_field_in_base64(self):
        """`_with_base64` knows it."""
        api = json.loads((Path(__file__).parents[2] / "operations.json").read_text())
        field = api["schemas"]["SendRequest"]["properties"]["attachments"]["items"]["properties"]["data"]
        self.assertEqual(field["contentEncoding"], "base64")
        self.assertEqual(json.dumps([api["operations"], api["schemas"]]).count('"contentEncoding":'), 1)

    def test_call_without_params_sends_an_object(self):
        request = self.request(lambda client: client.webhooks.rotate_secret("whk_1"))
        self.assertEqual((request.target, request.body), ("/webhooks/whk_1/rotate-secret", b"{}"))

    def test_keywords(self):
        request = self.request(lambda client: client.domains.create(name="example.com", timeout=5))
        self.assertEqual(request.json, {"name": "example.com"})
        request = self.request(
            lambda client: client.emails.list(limit=2, status=["sent", "failed"], tag=["a:1", "b:2"]), {"emails": []}
        )
        self.assertEqual(request.target, "/emails?limit=2&status=sent%2Cfailed&tag=a%3A1&tag=b%3A2")
        with self.assertRaises(TypeError):
            self.request(lambda client: client.domains.create({"name": "a"}, region="b"))
        with self.assertRaises(TypeError):
            self.request(lambda client: client.emails.send({"to": "a"}, idempotencykey="x"))

    def test_query(self):
        params = {"q": "a b&c=d+\u00e9", "created_after": datetime.date(2026, 1, 2), "cursor": None}
        request = self.request(lambda client: client.emails.list(params), {"emails": []})
        self.assertEqual(request.target, "/emails?q=a+b%26c%3Dd%2B%C3%A9&created_after=2026-01-02")

    def test_path(self):
        request = self.request(lambda client: client.emails.get("a/b?c d\u00e9"))
        self.assertEqual(request.target, "/emails/a%2Fb%3Fc%20d%C3%A9")
        request = self.request(
            lambda client: client.received_emails.attachments.get("inb_1", "2"), b"\x00", {"content-type": "image/png"}
        )
        self.assertEqual((request.target, self.result), ("/received-emails/inb_1/attachments/2", b"\x00"))

    def test_base_url_with_a_path(self):
        with MisbehavingServer(answer()) as server:
            self.do(server.url + "/api/", lambda client: client.account.get())
        self.assertEqual(server.requests[0].target, "/api/account")

    def test_answers_that_are_not_json(self):
        self.request(lambda client: client.emails.raw("msg_1"), b"From: a\r\n\xff", {"content-type": "message/rfc822"})
        self.assertEqual(self.result, b"From: a\r\n\xff")
        self.request(
            lambda client: client.domains.zone_file("example.com"),
            b"a. IN TXT",
            {"content-type": "text/plain; charset=utf-8"},
        )
        self.assertEqual(self.result, "a. IN TXT")
        with self.assertRaises(postrider.UnexpectedResponseError):
            self.request(lambda client: client.emails.raw("msg_1"), b"<html>", {"content-type": "text/html"})

    def test_csv_body(self):
        request = self.request(lambda client: client.suppressions.import_("email\na@example.net\n"))
        self.assertEqual((request.headers["content-type"], request.body), ("text/csv", b"email\na@example.net\n"))
        request = self.request(lambda client: client.suppressions.import_({"entries": [{"email": "a@example.net"}]}))
        self.assertEqual(request.headers["content-type"], "application/json")

    def test_options(self):
        options = {"if_match": "7", "extra_headers": {"X-Trace": "t", "authorization": "Bearer other"}}
        request = self.request(lambda client: client.affiliates.delete("aff_1", **options))
        self.assertEqual((request.headers["if-match"], request.headers["x-trace"]), ("7", "t"))
        self.assertEqual(request.headers["authorization"], f"Bearer {KEY}")

    def test_last_response_and_warnings(self):
        warnings = []
        headers = {"ratelimit-limit": "10", "ratelimit-remaining": "9", "ratelimit-reset": "1"}
        with MisbehavingServer(answer(200, {"warnings": ["`x` is unknown"]}, headers)) as server:
            self.do(server.url, lambda client: client.account.get(), on_warning=warnings.append)
        last = self.client.last_response
        self.assertEqual((last.status, last.request_id, tuple(last.rate_limit)), (200, "req_1", (10, 9, 1)))
        self.assertEqual((last.warnings, warnings), (("`x` is unknown",), ["`x` is unknown"]))

    def test_callback_that_fails_does_not_fail_the_call(self):
        def fail(warning):
            raise RuntimeError(warning)

        with MisbehavingServer(answer(200, {"id": "msg_1", "warnings": ["`x` is unknown"]})) as server:
            with self.assertLogs("postrider"):
                sent = self.do(server.url, lambda client: client.emails.send({}), on_warning=fail)
        self.assertEqual(sent["id"], "msg_1")

    def test_development_inbox(self):
        found, message = answer(200, {"total": 1, "messages": [{"id": 7}]}), answer(200, {"id": 7, "text": "Hello"})
        with MisbehavingServer(answer(200, {"messages": []}), found, message) as server:
            message = self.do(server.url, lambda client: client.dev.wait_for_email(to="a@example.net", timeout=20))
        self.assertEqual(message["text"], "Hello")
        self.assertRegex(server.requests[0].target, r"^/messages\?to=a%40example.net&wait=\d+s$")
        self.assertEqual(server.requests[2].target, "/messages/7")

    def test_development_inbox_without_the_message(self):
        with MisbehavingServer(answer(200, {"messages": []})) as server, self.assertRaises(postrider.TimeoutError):
            self.do(server.url, lambda client: client.dev.wait_for_email(to="a@example.net", timeout=0.05))


class Errors:
    def error(self, failure, error_class, *bases):
        with MisbehavingServer(failure) as server, self.assertRaises(error_class) as caught:
            self.do(server.url, lambda client: client.emails.send({"to": "a"}), max_retries=0)
        self.assertIs(type(caught.exception), error_class)
        for base in (postrider.ApiError, postrider.PostriderError, *bases):
            self.assertIsInstance(caught.exception, base)
        copied = pickle.loads(pickle.dumps(caught.exception))
        self.assertEqual((type(copied), str(copied)), (type(caught.exception), str(caught.exception)))
        copy.copy(caught.exception)
        return caught.exception

    def test_classes_and_fields(self):
        error = self.error(api_error(400, "validation_error", details={"fields": {"to": "is required"}}, request_id="req_7", doc_url="https://d"), postrider.ValidationError)  # fmt: skip
        self.assertEqual((error.fields, error.status, error.code), ({"to": "is required"}, 400, "validation_error"))
        self.assertEqual(
            (error.request_id, error.doc_url, error.headers["content-type"]), ("req_7", "https://d", "application/json")
        )
        self.assertIn("req_7", str(error))
        error = self.error(api_error(422, "validation_error", details={"suppressed": ["a@b"], "email_id": "msg_1"}), postrider.SuppressedRecipientError, postrider.ValidationError)  # fmt: skip
        self.assertEqual((error.suppressed, error.email_id, error.category), (["a@b"], "msg_1", None))
        error = self.error(api_error(422, "validation_error", details={"category_unsubscribed": ["a@b"], "category": "newsletter"}), postrider.SuppressedRecipientError)  # fmt: skip
        self.assertEqual((error.suppressed, error.category), (["a@b"], "newsletter"))
        self.assertEqual(
            self.error(
                api_error(401, "unauthorized", details={"reason": "expired"}), postrider.AuthenticationError
            ).reason,
            "expired",
        )
        self.error(api_error(403, "domain_not_verified"), postrider.PermissionError, PermissionError)
        self.error(api_error(404, "not_found"), postrider.NotFoundError)
        self.error(api_error(409, "conflict"), postrider.ConflictError)
        self.error(api_error(409, "idempotency_conflict"), postrider.IdempotencyConflictError, postrider.ConflictError)
        error = self.error(api_error(429, "plan_limit", upgrade_url="/billing", details={"limit": "daily", "used": 100, "cap": 100, "resets_at": "2026"}), postrider.PlanLimitError)  # fmt: skip
        self.assertEqual(
            (error.upgrade_url, error.limit, error.used, error.cap, error.resets_at),
            ("/billing", "daily", 100, 100, "2026"),
        )
        self.error(api_error(422, "upstream_error"), postrider.UpstreamError)
        self.error(api_error(504, "send_unconfirmed", details={"email_id": "msg_1"}), postrider.SendUnconfirmedError)
        self.error(api_error(500, "internal_error"), postrider.ServerError)

    def test_names_of_the_language(self):
        self.assertTrue(issubclass(postrider.TimeoutError, TimeoutError))
        self.assertTrue(issubclass(postrider.ConnectionError, ConnectionError))
        self.assertTrue(issubclass(postrider.PermissionError, PermissionError))


def page(number, has_more):
    return answer(
        200,
        {"emails": [{"id": f"msg_{number}"}], "has_more": has_more, "next_cursor": f"c{number}" if has_more else None},
    )


class SyncRequests(Requests, Errors, SyncCalls, unittest.TestCase):
    def test_pages(self):
        def collect(client):
            emails = client.emails.list(limit=1)
            self.assertEqual(len(server.requests), 1)
            self.assertEqual((emails["emails"], emails.data), ([{"id": "msg_1"}],) * 2)
            self.assertEqual(json.loads(json.dumps(emails)), dict(emails))
            return [email["id"] for email in emails]

        with MisbehavingServer(page(1, True), page(2, True), page(3, False)) as server:
            self.assertEqual(self.do(server.url, collect), ["msg_1", "msg_2", "msg_3"])
        self.assertEqual(
            [request.target for request in server.requests],
            ["/emails?limit=1", "/emails?limit=1&cursor=c1", "/emails?limit=1&cursor=c2"],
        )

    def test_page_by_page(self):
        def collect(client):
            second = client.emails.list().next_page()
            return second["emails"], second.next_page()

        with MisbehavingServer(page(1, True), page(2, False)) as server:
            self.assertEqual(self.do(server.url, collect), ([{"id": "msg_2"}], None))

    def test_iteration_fetches_what_is_used(self):
        with MisbehavingServer(page(1, True)) as server:
            self.do(server.url, lambda client: next(iter(client.emails.list())))
        self.assertEqual(len(server.requests), 1)

    def test_cursor_that_repeats(self):
        with MisbehavingServer(page(1, True)) as server, self.assertRaises(postrider.UnexpectedResponseError):
            self.do(server.url, lambda client: list(client.emails.list()))

    def test_cursors_that_go_in_a_circle(self):
        def walk(client):
            first = client.emails.list()
            self.assertEqual(next(iter(first))["id"], "msg_1")
            for _ in range(2):
                with self.assertRaises(postrider.UnexpectedResponseError):
                    list(first)
            page = first
            with self.assertRaises(postrider.UnexpectedResponseError):
                while page := page.next_page():
                    pass

        circle = [page(1, True), page(2, True)] * 5
        with MisbehavingServer(*circle) as server:
            self.do(server.url, walk)
        self.assertLessEqual(len(server.requests), 10)

    def test_connections_are_reused(self):
        with MisbehavingServer(answer()) as server:
            self.do(server.url, lambda client: [client.account.get() for _ in range(5)])
        self.assertEqual(server.connections, 1)

    def test_connection_that_the_server_closed(self):
        closed = threading.Event()

        def answer_and_close(connection, server):
            answer()(connection, server)
            connection.close()
            closed.set()
            return False

        def calls(client):
            client.account.get()
            closed.wait()
            return client.webhooks.create(url="https://example.com")

        with MisbehavingServer(answer_and_close, answer()) as server:
            self.do(server.url, calls)
        self.assertEqual((server.connections, len(server.requests)), (2, 2))

    def test_answer_that_closes_the_connection(self):
        with MisbehavingServer(answer(headers={"connection": "close"})) as server:
            self.do(server.url, lambda client: [client.account.get() for _ in range(2)])
        self.assertEqual(server.connections, 2)

    def test_threads_share_a_client(self):
        ids, errors = {}, []

        def echo(connection, server):
            answer(200, {"target": server.requests[-1].target}, {"x-request-id": "r"})(connection, server)

        def work(client, number):
            try:
                for _ in range(20):
                    client.emails.get(f"msg_{number}")
                ids[number] = client.last_response.request_id
            except Exception as error:
                errors.append(error)

        def calls(client):
            threads = [threading.Thread(target=work, args=(client, number)) for number in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

        with MisbehavingServer(echo) as server:
            self.do(server.url, calls)
        self.assertEqual((errors, len(ids), len(server.requests)), ([], 8, 160))
        self.assertLessEqual(server.connections, 8 + 8)

    @unittest.skipUnless(hasattr(os, "fork"), "there is no fork")
    def test_child_process_does_not_use_connections_of_its_parent(self):
        def calls(client):
            client.account.get()
            child = os.fork()
            if child == 0:
                try:
                    client.account.get()
                finally:
                    os._exit(0)
            os.waitpid(child, 0)
            client.account.get()

        with MisbehavingServer(answer()) as server:
            self.do(server.url, calls)
        self.assertEqual((server.connections, len(server.requests)), (2, 3))

    def test_last_response_belongs_to_the_thread(self):
        with MisbehavingServer(answer(headers={"x-request-id": "a"}), answer(headers={"x-request-id": "b"})) as server:
            client = postrider.Postrider(KEY, server.url)
            self.addCleanup(client.close)
            client.account.get()
            thread = threading.Thread(target=client.account.get)
            thread.start()
            thread.join()
            self.assertEqual(client.last_response.request_id, "a")

    def test_async_client_without_httpx(self):
        loaded = {name: module for name, module in sys.modules.items() if not name.startswith("postrider._async")}
        with (
            mock.patch.dict(sys.modules, {**loaded, "httpx": None}, clear=True),
            self.assertRaises(ImportError) as caught,
        ):
            postrider.__getattr__("AsyncPostrider")
        self.assertIn("pip install 'httpx>=0.27,<1'", str(caught.exception))


class AsyncRequests(Requests, Errors, AsyncCalls, unittest.TestCase):
    def test_pages(self):
        async def collect(client):
            return [email["id"] async for email in client.emails.list(limit=1)], [
                email["id"] async for email in await client.emails.list()
            ]

        with MisbehavingServer(page(1, True), page(2, True), page(3, False), page(1, True), page(2, False)) as server:
            self.assertEqual(self.do(server.url, collect), (["msg_1", "msg_2", "msg_3"], ["msg_1", "msg_2"]))
        self.assertEqual(server.requests[1].target, "/emails?limit=1&cursor=c1")

    def test_page_by_page(self):
        async def collect(client):
            first = await client.emails.list()
            second = await first.next_page()
            return first.data, second.data, await second.next_page()

        with MisbehavingServer(page(1, True), page(2, False)) as server:
            self.assertEqual(self.do(server.url, collect), ([{"id": "msg_1"}], [{"id": "msg_2"}], None))

    def test_cursors_that_go_in_a_circle(self):
        async def collect(client):
            return [email async for email in client.emails.list()]

        with MisbehavingServer(*[page(1, True), page(2, True)] * 3) as server:
            with self.assertRaises(postrider.UnexpectedResponseError):
                self.do(server.url, collect)

    def test_tasks_share_a_client(self):
        async def calls(client):
            return await asyncio.gather(*(client.emails.get(f"msg_{number}") for number in range(20)))

        with MisbehavingServer(answer()) as server:
            self.assertEqual(len(self.do(server.url, calls)), 20)

    def test_cancelled_task(self):
        async def call(client):
            started = asyncio.Event()
            asked.append((asyncio.get_running_loop(), started))
            task = asyncio.ensure_future(client.account.get())
            await started.wait()
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task

        asked = []

        def start(connection, server):
            loop, started = asked[0]
            loop.call_soon_threadsafe(started.set)
            server.closing.wait(20)

        with MisbehavingServer(start) as server:
            self.do(server.url, call)
