"""Which failures are retried, how long a client waits, and what stays the same over the attempts."""

import unittest
import uuid

import postrider

from .clients import AsyncCalls, SyncCalls
from .misbehaving_server import MisbehavingServer, answer, api_error, reset

SENT = answer(200, {"id": "msg_1", "status": "sent"})
EMAIL = {"from": "a@example.com", "to": "b@example.net", "subject": "x", "text": "x"}
UNAVAILABLE = api_error(503, "service_unavailable")


def send(client):
    return client.emails.send(EMAIL)


def create_webhook(client):
    return client.webhooks.create(url="https://example.com")


def get_account(client):
    return client.account.get()


class Retries:
    def attempts(self, call, *answers, error=None, **settings):
        """Makes a call and returns the number of requests that the server received."""
        with MisbehavingServer(*answers) as server:
            self.server = server
            if error is None:
                self.do(server.url, call, **settings)
            else:
                with self.assertRaises(error) as caught:
                    self.do(server.url, call, **settings)
                self.error = caught.exception
        return len(server.requests)

    def test_statuses_that_pass(self):
        for failure in (api_error(408, "request_timeout"), api_error(500, "internal_error"), api_error(502, "mail_server_error"), UNAVAILABLE,
                        api_error(429, "rate_limit_exceeded"), api_error(409, "idempotency_in_progress"), reset(),
                        answer(502, b"<html>Bad Gateway</html>", {"content-type": "text/html"})):  # fmt: skip
            self.assertEqual(self.attempts(send, failure, failure, SENT), 3)
            self.assertEqual(self.pauses, [0.25, 0.5])

    def test_retries_end(self):
        self.assertEqual(self.attempts(send, UNAVAILABLE, error=postrider.ServerError), 3)
        self.assertEqual(self.attempts(send, UNAVAILABLE, error=postrider.ServerError, max_retries=0), 1)
        self.assertEqual(
            self.attempts(
                lambda client: client.emails.send(EMAIL, max_retries=5), UNAVAILABLE, error=postrider.ServerError
            ),
            6,
        )
        self.assertEqual(self.pauses, [0.25, 0.5, 1.0, 2.0, 4.0])

    def test_failures_that_do_not_pass(self):
        for failure, error in (
            (api_error(429, "plan_limit"), postrider.PlanLimitError),
            (api_error(403, "plan_limit"), postrider.PlanLimitError),
            (api_error(422, "validation_error"), postrider.ValidationError),
            (api_error(504, "send_unconfirmed"), postrider.SendUnconfirmedError),
            (api_error(409, "conflict"), postrider.ConflictError),
            (answer(504, b"<html>"), postrider.UnexpectedResponseError),
            (answer(200, b""), postrider.UnexpectedResponseError),
        ):
            self.assertEqual(self.attempts(send, failure, SENT, error=error), 1)

    def test_post_without_idempotency_key(self):
        created = answer(200, {"webhook": {}})
        for failure in (UNAVAILABLE, api_error(429, "rate_limit_exceeded")):
            self.assertEqual(self.attempts(create_webhook, failure, created), 2)
        for failure, error in ((api_error(500, "internal_error"), postrider.ServerError), (reset(), postrider.ConnectionError),
                               (answer(502, b""), postrider.UnexpectedResponseError)):  # fmt: skip
            self.assertEqual(self.attempts(create_webhook, failure, created, error=error), 1)
        self.assertNotIn("idempotency-key", self.server.requests[0].headers)

    def test_refused_connection(self):
        for call in (get_account, send, create_webhook):
            with self.assertRaises(postrider.ConnectionError):
                self.do("http://127.0.0.1:9", call)
            self.assertEqual(self.pauses, [0.25, 0.5])

    def test_idempotency_key_is_kept(self):
        self.attempts(send, UNAVAILABLE, reset(), SENT)
        keys = [request.headers["idempotency-key"] for request in self.server.requests]
        self.assertEqual(len(set(keys)), 1)
        self.assertEqual(str(uuid.UUID(keys[0])), keys[0])
        self.assertEqual(len({request.body for request in self.server.requests}), 1)
        self.attempts(lambda client: client.emails.send(EMAIL, idempotency_key="order-7"), UNAVAILABLE, SENT)
        self.assertEqual([request.headers["idempotency-key"] for request in self.server.requests], ["order-7"] * 2)

    def test_idempotency_key_as_a_header(self):
        self.attempts(lambda client: client.emails.send(EMAIL, extra_headers={"IDEMPOTENCY-KEY": "order-8"}), SENT)
        self.assertEqual(self.server.requests[0].headers["idempotency-key"], "order-8")

    def test_each_call_has_its_own_key(self):
        keys = []
        for _ in range(2):
            self.attempts(send, SENT)
            keys.append(self.server.requests[0].headers["idempotency-key"])
        self.assertNotEqual(*keys)

    def test_retry_after(self):
        self.attempts(send, api_error(429, "rate_limit_exceeded", {"retry-after": "7"}), SENT)
        self.assertEqual(self.pauses, [7])
        date = {"date": "Thu, 01 Jan 2026 10:00:00 GMT", "retry-after": "Thu, 01 Jan 2026 10:00:09 GMT"}
        self.attempts(send, api_error(503, "service_unavailable", date), SENT)
        self.assertEqual(self.pauses, [9])
        for nonsense in ("soon", "-1", "1.5", "Thu, 99 Jan"):
            self.attempts(send, api_error(503, "service_unavailable", {"retry-after": nonsense}), SENT)
            self.assertEqual(self.pauses, [0.25])

    def test_wait_beyond_the_deadline_fails_at_once(self):
        failure = api_error(429, "rate_limit_exceeded", {"retry-after": "3600", "ratelimit-limit": "10", "ratelimit-remaining": "0", "ratelimit-reset": "60"})  # fmt: skip
        self.assertEqual(self.attempts(send, failure, SENT, error=postrider.RateLimitError), 1)
        error = self.error
        self.assertEqual((error.limit, error.remaining, error.reset, error.retry_after), (10, 0, 60, 3600))
        self.assertEqual(self.pauses, [])

    def test_deadline_covers_the_retries(self):
        clock, prepare = [0.0], self.prepare

        def slow_failure(connection, server):
            clock[0] += 20
            UNAVAILABLE(connection, server)

        self.prepare = lambda client: (prepare(client), setattr(client._core, "clock", lambda: clock[0]))
        # The first attempt takes 20 of 30 seconds, so the third is not made.
        self.assertEqual(self.attempts(send, slow_failure, error=(postrider.TimeoutError, postrider.ServerError)), 2)


class Unconfirmed:
    FAILURE = staticmethod(api_error(504, "send_unconfirmed", details={"email_id": "msg_7"}))

    def resolve(self, *answers, timeout=60):
        with MisbehavingServer(self.FAILURE, *answers) as server:
            self.server = server
            return self.do(server.url, self.send_and_resolve(timeout))

    def test_email_that_was_accepted(self):
        missing = api_error(404, "not_found")
        waiting = answer(200, {"email": {"id": "msg_7", "status": "failed", "last_event": "email.failed"}})
        delivered = answer(200, {"email": {"id": "msg_7", "status": "delivered"}})
        self.assertEqual(self.resolve(missing, waiting, delivered)["status"], "delivered")
        self.assertEqual([request.target for request in self.server.requests], ["/emails"] + ["/emails/msg_7"] * 3)
        self.assertEqual(self.pauses, [0.25, 0.5])

    def test_email_that_was_not_accepted(self):
        with self.assertRaises(postrider.NotFoundError):
            self.resolve(api_error(404, "not_found"), timeout=0.2)

    def test_email_that_stays_unconfirmed(self):
        waiting = answer(200, {"email": {"id": "msg_7", "status": "failed", "last_event": "email.failed"}})
        self.assertEqual(self.resolve(waiting, timeout=0.2)["status"], "failed")


class SyncRetries(Retries, SyncCalls, unittest.TestCase):
    pass


class AsyncRetries(Retries, AsyncCalls, unittest.TestCase):
    pass


class SyncUnconfirmed(Unconfirmed, SyncCalls, unittest.TestCase):
    def send_and_resolve(self, timeout):
        def call(client):
            try:
                return send(client)
            except postrider.SendUnconfirmedError as error:
                self.assertEqual(error.email_id, "msg_7")
                return error.resolve(timeout)

        return call


class AsyncUnconfirmed(Unconfirmed, AsyncCalls, unittest.TestCase):
    def send_and_resolve(self, timeout):
        async def call(client):
            try:
                return await send(client)
            except postrider.SendUnconfirmedError as error:
                return await error.resolve(timeout)

        return call
