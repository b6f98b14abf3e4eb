"""The event stream: reading, reconnecting, resuming."""

import itertools
import json
import unittest

import postrider

from .clients import AsyncCalls, SyncCalls
from .misbehaving_server import MisbehavingServer, answer, api_error, hang, raw, reset

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


def chunk(text):
    content = text.encode()
    return b"%x\r\n%s\r\n" % (len(content), content)


def event(number, **fields):
    content = {"id": f"evt_{number}", "type": "email.sent", "created_at": "2026", "data": {}, **fields}
    return f"id: c{number}\nevent: email.sent\ndata: {json.dumps(content, ensure_ascii=False)}\n\n"


class EventStream:
    def ids(self, *answers, count, **options):
        with MisbehavingServer(*answers) as server:
            self.server = server
            self.events = self.do(server.url, lambda client: self.collect(client, count, options))
        return [one["id"] for one in self.events]

    def test_events(self):
        text = (
            ": connected\nretry: 2000\n\n"
            + event(1, data={"x": "a\u2028b\u0085"})
            + ": beat\n\n"
            + event(2).replace("\n", "\r\n")
        )
        halves = chunk(text[:70]) + chunk(text[70:])
        self.assertEqual(
            self.ids(hang(HEAD + halves), count=2, types=["email.sent", "email.opened"]), ["evt_1", "evt_2"]
        )
        self.assertEqual((self.events[0]["cursor"], self.events[0]["data"]), ("c1", {"x": "a\u2028b\u0085"}))
        request = self.server.requests[0]
        self.assertEqual(
            (request.target, request.headers["accept"]),
            ("/webhook-events?types=email.sent%2Cemail.opened", "text/event-stream"),
        )
        self.assertNotIn("last-event-id", request.headers)

    def test_lost_connections(self):
        answers = [reset(HEAD + chunk(event(1) + event(2)[:20])), reset(), api_error(503, "service_unavailable", {"retry-after": "3"}),
                   api_error(429, "rate_limit_exceeded"), raw(HEAD + chunk(event(2))), answer(502, b"<html>"), hang(HEAD + chunk(event(3)))]  # fmt: skip
        self.assertEqual(self.ids(*answers, count=3, after="c0"), ["evt_1", "evt_2", "evt_3"])
        resumed = [request.headers["last-event-id"] for request in self.server.requests]
        self.assertEqual(resumed, ["c0", "c1", "c1", "c1", "c1", "c2", "c2"])
        self.assertEqual(self.pauses, [0.25, 0.5, 3, 2.0, 0.25, 0.5])

    def test_cursor_without_an_event(self):
        answers = [reset(HEAD + chunk(": connected\nid: c9\n\n")), hang(HEAD + chunk(event(10)))]
        self.assertEqual(self.ids(*answers, count=1), ["evt_10"])
        self.assertEqual(self.server.requests[1].headers["last-event-id"], "c9")

    def test_data_that_is_no_event(self):
        text = "data: [1]\n\ndata: {\n\ndata\n\ndata:\n\n" + event(1)
        self.assertEqual(self.ids(hang(HEAD + chunk(text)), count=1), ["evt_1"])

    def test_line_without_end(self):
        for endless in ("data: " + "x" * 3_000_000, ("data: " + "x" * 500_000 + "\n") * 4):
            with self.assertRaises(postrider.UnexpectedResponseError):
                self.ids(raw(HEAD + chunk(endless)), count=1)

    def test_size_of_an_event(self):
        fitting, large = (event(1, data={"x": "x" * size}) for size in (1_040_000, 1_060_000))
        self.assertEqual(self.ids(hang(HEAD + chunk(fitting + event(2) + fitting)), count=3)[1], "evt_2")
        with self.assertRaises(postrider.UnexpectedResponseError):
            self.ids(hang(HEAD + chunk(large)), count=1)

    def test_data_in_several_lines(self):
        self.assertEqual(self.ids(hang(HEAD + chunk('data: {"id":\ndata: "evt_1"}\n\n')), count=1), ["evt_1"])

    def test_server_that_was_never_there(self):
        with self.assertRaises(postrider.ConnectionError):
            self.do("http://127.0.0.1:9", lambda client: self.collect(client, 1, {}))
        self.assertEqual(self.pauses, [0.25, 0.5])

    def test_errors_that_do_not_pass(self):
        for failure, error in ((api_error(401, "unauthorized"), postrider.AuthenticationError), (api_error(403, "forbidden"), postrider.PermissionError),
                               (api_error(400, "invalid_cursor"), postrider.ValidationError), (answer(200, {}), postrider.UnexpectedResponseError),
                               (answer(404, b"<html>"), postrider.UnexpectedResponseError)):  # fmt: skip
            with self.assertRaises(error):
                self.ids(failure, count=1)


class SyncEventStream(EventStream, SyncCalls, unittest.TestCase):
    @staticmethod
    def collect(client, count, options):
        stream = client.webhook_events.stream(**options)
        try:
            return list(itertools.islice(stream, count))
        finally:
            stream.close()

    def test_cancellation(self):
        cancellation = postrider.Cancellation()

        def cancel(connection, server):
            connection.sendall(HEAD + chunk(event(1)))
            server.closing.wait(20)

        def read(client):
            for _ in client.webhook_events.stream(cancellation=cancellation):
                cancellation.cancel()

        with MisbehavingServer(cancel) as server, self.assertRaises(postrider.CancelledError):
            self.do(server.url, read)


class AsyncEventStream(EventStream, AsyncCalls, unittest.TestCase):
    @staticmethod
    async def collect(client, count, options):
        stream, events = client.webhook_events.stream(**options), []
        async for one in stream:
            events.append(one)
            if len(events) == count:
                break
        await stream.aclose()
        return events
