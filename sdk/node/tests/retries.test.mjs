// Retries, with a clock that does not wait.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ConnectionError, PlanLimitError, RateLimitError, SendUnconfirmedError, ServerError, UnexpectedResponseError } from "postrider";
import { answering, apiError, client, testClock } from "./server.mjs";

const SENT = { json: { id: "msg_1", status: "sent" } };
const EMAIL = { from: "ada@example.com", to: "grace@example.net", subject: "Hello", text: "Hello" };
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-/;

test("a send is repeated with the same idempotency key", async (t) => {
  for (const failure of [
    apiError(408, "request_timeout"), apiError(500, "internal_error"), apiError(502, "mail_server_error"), apiError(503, "service_unavailable"),
    apiError(429, "rate_limit_exceeded"), apiError(409, "idempotency_in_progress"), { status: 502, headers: { "content-type": "text/html" }, body: "<html>" },
    (request) => request.socket.resetAndDestroy(),
    (request, response) => {
      response.writeHead(200, { "content-type": "application/json", "content-length": "100" });
      response.write("{", () => request.socket.destroy());
    },
  ]) {
    const clock = testClock();
    const { baseUrl, requests } = await answering(t, failure, failure, SENT);
    const { data, error } = await client(baseUrl, { clock }).emails.send(EMAIL);
    assert.equal(error, null);
    assert.equal(data.id, "msg_1");
    assert.deepEqual(clock.waits, [250, 500]);
    const keys = requests.map((request) => request.headers["idempotency-key"]);
    assert.equal(new Set(keys).size, 1);
    assert.match(keys[0], UUID);
  }
});

test("a key of the caller is kept; each call has another one", async (t) => {
  const { baseUrl, requests } = await answering(t, apiError(500, "internal_error"), SENT);
  const { emails } = client(baseUrl, { clock: testClock() });
  await emails.send(EMAIL, { idempotencyKey: "order-1" });
  await emails.send(EMAIL);
  await emails.send(EMAIL);
  const keys = requests.map((request) => request.headers["idempotency-key"]);
  assert.deepEqual(keys.slice(0, 2), ["order-1", "order-1"]);
  assert.notEqual(keys[2], keys[3]);
  await emails.send(EMAIL, { headers: { "Idempotency-Key": "order-2" } });
  assert.equal(requests[4].headers["idempotency-key"], "order-2");
});

test("what is never repeated", async (t) => {
  for (const [failure, errorClass] of [
    [apiError(429, "plan_limit", { upgrade_url: "/billing", details: { limit: "daily", used: 100, cap: 100, resets_at: "2026-01-02T00:00:00Z" } }), PlanLimitError],
    [apiError(403, "plan_limit"), PlanLimitError],
    [apiError(504, "send_unconfirmed", { details: { email_id: "msg_2" } }), SendUnconfirmedError],
    [{ status: 504, headers: { "content-type": "text/html" }, body: "<html>" }, UnexpectedResponseError],
  ]) {
    const { baseUrl, requests } = await answering(t, failure);
    const { error } = await client(baseUrl, { clock: testClock() }).emails.send(EMAIL);
    assert(error instanceof errorClass);
    assert.equal(requests.length, 1);
  }
});

test("a POST without an idempotency key is repeated only if nothing was done", async (t) => {
  for (const [failure, attempts] of [
    [apiError(500, "internal_error"), 1], [apiError(502, "mail_server_error"), 1], [(request) => request.socket.resetAndDestroy(), 1],
    [apiError(503, "service_unavailable"), 3], [apiError(429, "rate_limit_exceeded"), 3],
  ]) {
    const { baseUrl, requests } = await answering(t, failure);
    await client(baseUrl, { clock: testClock() }).templates.create({ name: "Welcome", subject: "Hi", html: "Hi" });
    assert.equal(requests.length, attempts);
    assert.equal(requests[0].headers["idempotency-key"], undefined);
  }
  const clock = testClock();
  const refused = await client("http://127.0.0.1:9", { clock }).templates.create({ name: "Welcome", subject: "Hi", html: "Hi" });
  assert(refused.error instanceof ConnectionError);
  assert.equal(clock.waits.length, 2);
});

test("retry-after replaces the wait", async (t) => {
  const clock = testClock();
  const date = new Date(clock.now() + 12_000).toUTCString();
  const { baseUrl } = await answering(
    t, apiError(503, "service_unavailable", { headers: { "retry-after": "7" } }), apiError(429, "rate_limit_exceeded", { headers: { "retry-after": date } }),
    apiError(503, "service_unavailable", { headers: { "retry-after": "0" } }),
    apiError(503, "service_unavailable", { headers: { "retry-after": "Thu, 01 Jan 1970 00:00:00 GMT" } }), apiError(503, "service_unavailable", { headers: { "retry-after": "soon" } }), SENT,
  );
  const { error } = await client(baseUrl, { clock, maxRetries: 5 }).emails.send(EMAIL);
  assert.equal(error, null);
  assert.equal(clock.waits[0], 7000);
  assert(clock.waits[1] > 3000 && clock.waits[1] <= 5000);
  assert.deepEqual(clock.waits.slice(2), [0, 0, 4000]);
});

test("a wait beyond the deadline fails at once", async (t) => {
  const clock = testClock();
  const headers = { "retry-after": "3600", "ratelimit-limit": "10", "ratelimit-remaining": "0", "ratelimit-reset": "3600" };
  const { baseUrl, requests } = await answering(t, apiError(429, "rate_limit_exceeded", { headers }));
  const { error } = await client(baseUrl, { clock }).emails.send(EMAIL);
  assert(error instanceof RateLimitError);
  assert.deepEqual([error.limit, error.remaining, error.reset, error.retryAfter], [10, 0, 3600, 3600]);
  assert.equal(requests.length, 1);
  assert.deepEqual(clock.waits, []);
});

test("waits grow to 8 seconds; the last error is the call's", async (t) => {
  const clock = { ...testClock(), random: () => 1 };
  const { baseUrl, requests } = await answering(t, apiError(503, "service_unavailable"));
  const { error, requestId } = await client(baseUrl, { clock, maxRetries: 6, timeout: 100_000 }).emails.send(EMAIL);
  assert(error instanceof ServerError);
  assert.equal(requestId, "req_1");
  assert.deepEqual(clock.waits, [500, 1000, 2000, 4000, 8000, 8000]);
  assert.equal(requests.length, 7);
  await client(baseUrl, { clock }).emails.send(EMAIL, { maxRetries: 0 });
  assert.equal(requests.length, 8);
});

test("resolve asks until the email is no longer failed, and never sends", async (t) => {
  const clock = testClock();
  const email = (status) => ({ json: { email: { id: "msg_2", status, last_event: `email.${status}` } } });
  const unconfirmed = apiError(504, "send_unconfirmed", { details: { email_id: "msg_2" } });
  const { baseUrl, requests } = await answering(t, unconfirmed, apiError(404, "not_found"), email("failed"), email("sent"));
  const { error } = await client(baseUrl, { clock }).emails.send(EMAIL);
  assert.equal(error.emailId, "msg_2");
  assert.equal((await error.resolve()).status, "sent");
  assert.deepEqual(requests.map(({ method, url }) => `${method} ${url}`), ["POST /emails", ...Array(3).fill("GET /emails/msg_2")]);
  const { baseUrl: other } = await answering(t, unconfirmed, email("failed"));
  const { error: failed } = await client(other, { clock }).emails.send(EMAIL);
  assert.equal((await failed.resolve({ timeout: 5000 })).status, "failed");
});
