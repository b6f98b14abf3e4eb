// Servers, proxies and callers that misbehave: each gets a typed error that says what to do, without the key.
import assert from "node:assert/strict";
import { test } from "node:test";
import { inspect } from "node:util";
import {
  CancelledError, ConfigurationError, ConnectionError, Postrider, PostriderError, TimeoutError, UnexpectedResponseError, ValidationError,
} from "postrider";
import { answering, apiError, client, KEY, raw, testClock } from "./server.mjs";

/** Calls `account.get` without retries, and checks that its error shows no key. */
async function failure(baseUrl, options = {}) {
  const { data, error } = await client(baseUrl, { maxRetries: 0, timeout: 20_000, ...options }).account.get();
  assert.equal(data, null);
  assert(error instanceof PostriderError);
  for (const shown of [error.message, error.stack, JSON.stringify(error), inspect(error, { depth: 9, showHidden: true })]) assert(!shown.includes(KEY), shown);
  return error;
}

test("a wrong port", async (t) => {
  const { baseUrl, server } = await answering(t, {});
  await new Promise((resolve) => server.close(resolve));
  const error = await failure(baseUrl);
  assert(error instanceof ConnectionError);
  assert.deepEqual([error.reason, error.sent], ["refused", false]);
  assert.match(error.message, /base URL/);
});

test("a port that fetch refuses", async () => {
  assert.equal((await failure("http://127.0.0.1:9")).reason, "refused");
});

test("a wrong host", async () => {
  const error = await failure("https://no-such-host.invalid");
  assert(error instanceof ConnectionError);
  assert.equal(error.reason, "dns");
});

test("a server without TLS at an https URL", async (t) => {
  const port = await raw(t, (socket) => socket.end("HTTP/1.1 400 Bad Request\r\n\r\n"));
  const error = await failure(`https://127.0.0.1:${port}`);
  assert(error instanceof ConnectionError);
  assert.equal(error.reason, "tls");
  assert.match(error.message, /certificate/);
});

test("a connection that is lost in the TLS handshake", async (t) => {
  const port = await raw(t, (socket) => socket.destroy());
  assert.equal((await failure(`https://127.0.0.1:${port}`)).reason, "reset");
});

test("a host whose name looks like another cause", async () => {
  const cause = Object.assign(new Error("Host: dns.example.com. is not in the cert's altnames"), { code: "ERR_TLS_CERT_ALTNAME_INVALID" });
  const fetch = () => Promise.reject(new TypeError("fetch failed", { cause }));
  assert.equal((await failure("https://dns.example.com", { fetch })).reason, "tls");
});

test("no answer, slow headers, slow body", async (t) => {
  for (const behaviour of [
    () => {},
    (socket) => {
      socket.write("HTTP/1.1 200 OK\r\nx-slow: ");
      const timer = setInterval(() => socket.write("a"), 5);
      socket.on("close", () => clearInterval(timer));
    },
    (socket) => socket.write("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{"),
    (socket) => socket.write("HTTP/1.1 500 No\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{"),
  ]) {
    const port = await raw(t, (socket) => socket.once("data", () => behaviour(socket)));
    const error = await failure(`http://127.0.0.1:${port}`, { timeout: 100 });
    assert(error instanceof TimeoutError);
    assert.match(error.message, /timeout/);
  }
});

test("a fetch that heeds no signal", async () => {
  const error = await failure("http://127.0.0.1:1", { timeout: 20, fetch: () => new Promise(() => {}) });
  assert(error instanceof TimeoutError);
});

test("a reset before the answer and in the middle of the body", async (t) => {
  const early = await raw(t, (socket) => socket.once("data", () => socket.resetAndDestroy()));
  const lost = await failure(`http://127.0.0.1:${early}`);
  assert(lost instanceof ConnectionError);
  assert.deepEqual([lost.reason, lost.sent], ["reset", true]);
  const late = await raw(t, (socket) =>
    socket.once("data", () => socket.write("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{", () => socket.destroy())));
  const cut = await failure(`http://127.0.0.1:${late}`);
  assert(cut instanceof UnexpectedResponseError);
  assert.equal(cut.endedEarly, true);
  const closing = await raw(t, (socket) => socket.once("data", () => socket.end('HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n{"acc')));
  assert(await failure(`http://127.0.0.1:${closing}`) instanceof UnexpectedResponseError);
});

test("answers that are not the API's", async (t) => {
  const html = { "content-type": "text/html" };
  for (const [answer, message] of [
    [{ status: 200, headers: html, body: "<!doctype html>shop" }, /base URL/],
    [{ status: 403, headers: html, body: "<html>Blocked" }, /proxy/],
    [{ status: 413, headers: html, body: "<html>413" }, /limit for request bodies/],
    [{ status: 200, headers: { "content-type": "application/json" }, body: "" }, /empty/],
    [{ status: 204 }, /empty/],
    [{ status: 200, json: [1, 2] }, /not the API's/],
    [{ status: 200, headers: { "content-type": "application/json" }, body: "{not json" }, /not the API's/],
    [{ status: 422, json: { error: "no" } }, /not the API's/],
    [{ status: 422, json: { error: { message: "no", code: 7 } } }, /not the API's/],
    [{ status: 302, headers: { location: "https://example.com/" } }, /example\.com.*base URL/],
  ]) {
    const { baseUrl, requests } = await answering(t, answer);
    const error = await failure(baseUrl);
    assert(error instanceof UnexpectedResponseError);
    assert.equal(error.status, answer.status);
    assert.match(error.message, message);
    assert.equal(requests.length, 1);
  }
});

test("an error body of 10 MB is not read to its end", async (t) => {
  const { baseUrl } = await answering(t, { status: 400, headers: { "content-type": "application/json" }, body: "x".repeat(10_000_000) });
  const error = await failure(baseUrl);
  assert(error instanceof UnexpectedResponseError);
  assert.equal(error.excerpt, "x".repeat(200));
});

test("a server that shows the key", async (t) => {
  const { baseUrl } = await answering(t, { status: 500, headers: { "content-type": "text/plain", "x-echo": KEY }, body: `Authorization: Bearer ${KEY}` });
  assert.match((await failure(baseUrl)).excerpt, /\[API key\]/);
  const { baseUrl: api } = await answering(t, apiError(400, "validation_error", { message: `no ${KEY}`, details: { fields: { from: KEY } } }));
  assert((await failure(api)) instanceof ValidationError);
  const error = await failure("http://127.0.0.1:1", { fetch: async (_, { headers }) => Promise.reject(new TypeError(JSON.stringify(headers))) });
  assert.match(error.message, /\[API key\]/);
});

test("unknown fields and values are kept", async (t) => {
  const { baseUrl } = await answering(t, { json: { email: { id: "msg_1", status: "teleported", extra: { x: [1] } } } });
  const { data } = await client(baseUrl).emails.get("msg_1");
  assert.deepEqual(data, { email: { id: "msg_1", status: "teleported", extra: { x: [1] } } });
});

test("options that are wrong", () => {
  const ok = { baseUrl: "https://mail.example.com" };
  for (const [key, options, message] of [
    ["rnl_abc\nx-evil: 1", ok, /line break/],
    ["rnl_abc ", ok, /space/],
    ["rnl_ä", ok, /ASCII/],
    ["", ok, /POSTRIDER_API_KEY/],
    [KEY, { baseUrl: "" }, /POSTRIDER_BASE_URL/],
    [KEY, { baseUrl: "example.com" }, /https:\/\//],
    [KEY, { baseUrl: KEY }, /https:\/\//],
    [KEY, { baseUrl: "ftp://example.com" }, /https:\/\//],
    [KEY, { baseUrl: "https://user:secret@example.com" }, /without user/],
    [KEY, { baseUrl: "http://192.0.2.1" }, /allowInsecureHttp/],
    [KEY, { baseUrl: "http://127.example.com" }, /allowInsecureHttp/],
    [KEY, { ...ok, timeout: 0 }, /timeout/],
    [KEY, { ...ok, timeout: Number.NaN }, /timeout/],
    [KEY, { ...ok, maxRetries: -1 }, /maxRetries/],
    [KEY, { ...ok, userAgent: "a\nb" }, /user-agent/],
  ]) {
    assert.throws(() => new Postrider(key, options), (error) => {
      assert(error instanceof ConfigurationError);
      assert.match(error.message, message);
      assert(!error.message.includes("rnl_"));
      assert(!error.message.includes("secret"));
      return true;
    });
  }
  for (const baseUrl of ["http://localhost:1", "http://dev.localhost", "http://127.0.0.2", "http://[::1]:8025", "https://example.com/base/"]) new Postrider(KEY, { baseUrl });
  new Postrider(KEY, { baseUrl: "http://192.0.2.1", allowInsecureHttp: true });
});

test("arguments that are wrong", async (t) => {
  const { baseUrl, requests } = await answering(t, { json: {} });
  const { emails } = client(baseUrl);
  const circular = {};
  circular.self = circular;
  for (const result of [
    await emails.get(""),
    await emails.get(".."),
    await emails.get(undefined),
    await emails.send({ to: "a@example.com" }, { idempotencyKey: "a\r\nx-evil: 1" }),
    await emails.send({ to: "a@example.com" }, { headers: { "x-a": "b\nc" } }),
    await emails.send({ to: "a@example.com" }, { headers: { "x a": "b" } }),
    ...(await Promise.all(["Transfer-Encoding", "content-length", "HOST", "Connection", "Proxy-Authorization"].map((name) =>
      emails.send({ to: "a@example.com" }, { headers: { [name]: "1" } })))),
    await emails.send({ to: "a@example.com" }, { timeout: -1 }),
    await emails.send({ to: "a@example.com", subject: 1n }),
    await emails.send({ to: "a@example.com", variables: circular }),
    await emails.list(circular),
    await emails.list({ createdAfter: new Date(Number.NaN) }),
  ]) {
    assert(result.error instanceof ConfigurationError, inspect(result));
  }
  assert.equal(requests.length, 0);
  await emails.get("a/b?c");
  assert.equal(requests[0].url, "/emails/a%2Fb%3Fc");
});

test("bytes in a field of text", async (t) => {
  const { baseUrl, requests } = await answering(t, { json: {} });
  const { emails, suppressions } = client(baseUrl);
  for (const bytes of [Buffer.from("<p>"), new Uint8Array(3), new Uint8Array(3).buffer, new DataView(new ArrayBuffer(3))]) {
    for (const [result, place] of [
      [await emails.send({ html: bytes }), "html"],
      [await emails.send({ attachments: [{ name: bytes, data: bytes }] }), "attachments[0].name"],
      [await emails.send({ variables: { data: bytes } }), "variables.data"],
      [await emails.sendBatch({ emails: [{ text: bytes }] }), "emails[0].text"],
      [await emails.list({ q: bytes }), "q"],
      [await suppressions.import(bytes), "params"],
    ]) {
      assert(result.error instanceof ConfigurationError, inspect(result));
      assert(result.error.message.includes(`\`${place}\``), result.error.message);
    }
  }
  assert.equal(requests.length, 0);
});

test("interim answers", async (t) => {
  const body = JSON.stringify({ id: "msg_1", status: "sent" });
  const answer = `HTTP/1.1 103 Early Hints\r\nlink: <x>\r\n\r\nHTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
  const port = await raw(t, (socket) => socket.once("data", () => socket.write(answer)));
  assert.equal((await client(`http://127.0.0.1:${port}`).emails.send({ to: "a@example.com" })).data?.id, "msg_1");
});

test("cancelling", async (t) => {
  const port = await raw(t, () => {});
  const controller = new AbortController();
  const call = client(`http://127.0.0.1:${port}`).account.get({}, { signal: controller.signal });
  controller.abort();
  assert((await call).error instanceof CancelledError);
  assert((await client(`http://127.0.0.1:${port}`).account.get({}, { signal: controller.signal })).error instanceof CancelledError);
});

test("a field named __proto__ is one like the others", async (t) => {
  const { baseUrl, requests } = await answering(t, { json: { id: "msg_1", status: "sent" } });
  await client(baseUrl).emails.send(JSON.parse('{"subject":"Hi","variables":{"__proto__":{"polluted":1}}}'));
  assert.equal(requests[0].body, '{"subject":"Hi","variables":{"__proto__":{"polluted":1}}}');
  assert.equal({}.polluted, undefined);
});

test("cancelling while the next attempt is waited for", async (t) => {
  const { baseUrl } = await answering(t, apiError(503, "service_unavailable", { headers: { "retry-after": "20" } }));
  const controller = new AbortController();
  const clock = { ...testClock(), sleep: async () => controller.abort() };
  const { error } = await client(baseUrl, { clock }).account.get({}, { signal: controller.signal });
  assert(error instanceof CancelledError);
});

test("nothing shows the key", () => {
  const shown = [client("https://example.com"), client("https://example.com", { throwOnError: true })];
  for (const one of shown) {
    assert(!inspect(one, { depth: 9, showHidden: true }).includes(KEY));
    assert(!JSON.stringify(one).includes(KEY));
  }
});
