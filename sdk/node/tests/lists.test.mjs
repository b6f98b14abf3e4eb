// Lists that are awaited and iterated, and the event stream.
import assert from "node:assert/strict";
import { test } from "node:test";
import { AuthenticationError, CancelledError, ConnectionError, UnexpectedResponseError } from "postrider";
import { answering, apiError, client, testClock } from "./server.mjs";

const page = (ids, next) => ({ json: { emails: ids.map((id) => ({ id })), has_more: next !== null, next_cursor: next } });

async function ids(list) {
  const found = [];
  for await (const { id } of list) found.push(id);
  return found;
}

test("a list is its first page when awaited, and all items when iterated", async (t) => {
  const { baseUrl, requests } = await answering(t, page(["1"], "a"), page([], "b"), page(["2", "3"], null));
  const list = client(baseUrl).emails.list({ limit: 2 });
  assert.equal(requests.length, 0);
  assert.deepEqual((await list).data.emails, [{ id: "1" }]);
  assert.deepEqual(await ids(list), ["1", "2", "3"]);
  assert.deepEqual(requests.map(({ url }) => url), ["/emails?limit=2", "/emails?limit=2&cursor=a", "/emails?limit=2&cursor=b"]);
});

test("pages are fetched when they are needed", async (t) => {
  const { baseUrl, requests } = await answering(t, page(["1", "2"], "a"), page(["3"], null));
  for await (const { id } of client(baseUrl).emails.list()) if (id === "2") break;
  assert.equal(requests.length, 1);
});

test("a cursor on the last page does not continue", async (t) => {
  const { baseUrl } = await answering(t, { json: { events: [{ id: "evt_1" }], has_more: false, next_cursor: "z" } });
  assert.deepEqual(await ids(client(baseUrl).webhookEvents.list({ order: "asc" })), ["evt_1"]);
});

test("an iteration throws; a server that repeats its cursor does not keep it running", async (t) => {
  const { baseUrl } = await answering(t, page(["1"], "a"), apiError(401, "unauthorized"));
  await assert.rejects(ids(client(baseUrl).emails.list()), AuthenticationError);
  const { baseUrl: repeating, requests } = await answering(t, page(["1"], "a"));
  await assert.rejects(ids(client(repeating).emails.list()), UnexpectedResponseError);
  assert.equal(requests.length, 2);
});

test("cursors that go in a circle", async (t) => {
  const { baseUrl, requests } = await answering(t, page(["1"], "a"), page(["2"], "b"), page(["1"], "a"));
  const list = client(baseUrl).emails.list();
  await assert.rejects(ids(list), UnexpectedResponseError);
  assert.equal(requests.length, 3);
});

test("the size of an event", async (t) => {
  const sized = (size, letter = "x") => `data: {"text":"${letter.repeat(size)}"}\n\n`;
  const large = await answering(t, stream(sized(1_040_000), event("b"), sized(1_040_000)), stream(sized(1_060_000)));
  const found = await take(3, client(large.baseUrl).webhookEvents.stream());
  assert.deepEqual(found, ["", "b", "b"]);
  await assert.rejects(client(large.baseUrl).webhookEvents.stream().next(), UnexpectedResponseError);
  const letters = await answering(t, stream(sized(600_000, "é")));
  await assert.rejects(client(letters.baseUrl).webhookEvents.stream().next(), UnexpectedResponseError);
});

const event = (cursor) => `id: ${cursor}\nevent: email.sent\ndata: {"id":"evt_${cursor}","type":"email.sent","created_at":"x","data":{}}\n\n`;
const stream = (...parts) => async (_, response) => {
  response.writeHead(200, { "content-type": "text/event-stream" });
  for (const part of parts) await new Promise((resolve) => response.write(part, resolve));
  response.end();
};

async function take(count, events) {
  const found = [];
  for await (const one of events) if (found.push(one.cursor) === count) break;
  return found;
}

test("a stream resumes after the last event", async (t) => {
  const clock = testClock();
  const { baseUrl, requests } = await answering(
    t, stream(": connected\nretry: 2000\n\n", event("a"), event("b").slice(0, 20)), stream(), (request) => request.socket.resetAndDestroy(),
    apiError(503, "service_unavailable"), { status: 502, headers: { "content-type": "text/html" }, body: "<html>" },
    stream("id: b2\n\n"), stream(event("c").replaceAll("\n", "\r\n"), ":\n\n", event("d")),
  );
  const events = client(baseUrl, { clock }).webhookEvents.stream({ types: ["email.sent", "email.bounced"], after: "z" });
  assert.deepEqual(await take(3, events), ["a", "c", "d"]);
  assert.deepEqual(requests.map(({ headers }) => headers["last-event-id"]), ["z", "a", "a", "a", "a", "a", "b2"]);
  assert.equal(requests[0].url, "/webhook-events?types=email.sent,email.bounced");
  assert.equal(requests[0].headers.accept, "text/event-stream");
  assert.deepEqual(clock.waits, [250, 500, 1000, 2000, 4000, 4000]);
});

test("lines that are split anywhere", async (t) => {
  const text = Buffer.from(`id: é\r\ndata: {"id":"evt_1",\r\ndata: "type":"email.sent"}\r\n\r\n${event("b")}`);
  for (const size of [1, 2, 3, 7]) {
    const parts = [];
    for (let start = 0; start < text.length; start += size) parts.push(text.subarray(start, start + size));
    const { baseUrl } = await answering(t, stream(...parts));
    assert.deepEqual(await take(2, client(baseUrl).webhookEvents.stream()), ["é", "b"]);
  }
});

test("leaving the loop closes the connection", async (t) => {
  let closed;
  const { baseUrl } = await answering(t, (_, response) => {
    closed = new Promise((resolve) => response.once("close", resolve));
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(event("a"));
  });
  assert.deepEqual(await take(1, client(baseUrl).webhookEvents.stream()), ["a"]);
  await closed;
});

test("what ends a stream", async (t) => {
  const next = (baseUrl, options) => client(baseUrl, { clock: testClock() }).webhookEvents.stream(options).next();
  await assert.rejects(next((await answering(t, apiError(401, "unauthorized"))).baseUrl), AuthenticationError);
  await assert.rejects(next((await answering(t, { headers: { "content-type": "text/html" }, body: "<html>" })).baseUrl), UnexpectedResponseError);
  await assert.rejects(next((await answering(t, stream("data: {no json\n\n"))).baseUrl), UnexpectedResponseError);
  await assert.rejects(next((await answering(t, stream(`data: ${"x".repeat(2 << 20)}`))).baseUrl), UnexpectedResponseError);
  await assert.rejects(next("http://127.0.0.1:9"), ConnectionError);
  const controller = new AbortController();
  const silent = await answering(t, (_, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(":\n\n", () => controller.abort());
  });
  await assert.rejects(next(silent.baseUrl, { signal: controller.signal }), CancelledError);
});
