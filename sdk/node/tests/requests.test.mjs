// What is sent, and what calls answer.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { test } from "node:test";
import {
  ApiError, AuthenticationError, ConflictError, IdempotencyConflictError, NotFoundError, PermissionError, Postrider, PostriderError, SERVICE_VERSION, ServerError,
  SuppressedRecipientError, UpstreamError, ValidationError, VERSION,
} from "postrider";
import { answering, apiError, client, KEY, testClock } from "./server.mjs";

const SENT = { json: { id: "msg_1", status: "sent" } };

test("camelCase becomes the API's names; free maps and unknown fields stay", async (t) => {
  const { baseUrl, requests } = await answering(t, SENT);
  const { emails, automations } = client(baseUrl);
  await emails.send({
    from: { email: "ada@example.com", name: "Ada" },
    to: ["grace@example.net"],
    replyTo: "ada@example.com",
    scheduledAt: new Date("2026-12-01T00:00:00Z"),
    onSuppressed: "skip",
    headers: { "X-Order": "1", xOrderId: "2" },
    tags: { orderId: "7" },
    variables: { firstName: "Grace", replyTo: { scheduledAt: 1 } },
    attachments: [{ name: "a.bin", contentType: "application/pdf", data: new Uint8Array([0, 255, 128]), contentId: "logo" }],
    unknownField: { scheduledAt: 1 },
  });
  assert.deepEqual(requests[0].json, {
    from: { email: "ada@example.com", name: "Ada" },
    to: ["grace@example.net"],
    reply_to: "ada@example.com",
    scheduled_at: "2026-12-01T00:00:00.000Z",
    on_suppressed: "skip",
    headers: { "X-Order": "1", xOrderId: "2" },
    tags: { orderId: "7" },
    variables: { firstName: "Grace", replyTo: { scheduledAt: 1 } },
    attachments: [{ name: "a.bin", content_type: "application/pdf", data: "AP+A", content_id: "logo" }],
    unknownField: { scheduledAt: 1 },
  });
  await emails.send({ reply_to: "a@example.com", attachments: [{ content_type: "text/plain" }], to: null });
  assert.deepEqual(requests[1].json, { reply_to: "a@example.com", attachments: [{ content_type: "text/plain" }], to: null });
  await emails.sendBatch({ emails: [{ replyTo: "a@example.com", idempotencyKey: "k" }] });
  assert.deepEqual(requests[2].json, { emails: [{ reply_to: "a@example.com", idempotency_key: "k" }] });
  await automations.create({
    name: "Trial",
    trigger: { event: "user.created", cancelOnEvents: ["subscription.started"] },
    steps: [{ type: "wait_for_event", onTimeout: "continue", variables: { userName: "x" } }],
  });
  assert.deepEqual(requests[3].json, {
    name: "Trial",
    trigger: { event: "user.created", cancel_on_events: ["subscription.started"] },
    steps: [{ type: "wait_for_event", on_timeout: "continue", variables: { userName: "x" } }],
  });
  await automations.pause("aut_1");
  await automations.cancelRuns("aut_1");
  assert.deepEqual(requests.slice(4).map(({ json }) => json), [{ action: "pause" }, { action: "cancel_runs" }]);
});

test("bytes of an attachment", async (t) => {
  const { baseUrl, requests } = await answering(t, SENT);
  const bytes = new Uint8Array([9, 0, 255, 128, 9]);
  for (const data of [Buffer.from([0, 255, 128]), bytes.subarray(1, 4), bytes.slice(1, 4).buffer, new DataView(bytes.buffer, 1, 3)]) {
    await client(baseUrl).emails.send({ attachments: [{ name: "a.bin", data }] });
    assert.deepEqual(requests.pop().json, { attachments: [{ name: "a.bin", data: "AP+A" }] });
  }
});

// `toWire` knows this field.
test("the API has one field in base64", () => {
  const { operations, schemas } = JSON.parse(readFileSync(new URL("../../operations.json", import.meta.url)));
  assert.equal(schemas.SendRequest.properties.attachments.items.properties.data.contentEncoding, "base64");
  assert.equal(JSON.stringify([operations, schemas]).split('"contentEncoding":').length, 2);
});

test("query parameters", async (t) => {
  const { baseUrl, requests } = await answering(t, { json: { emails: [], has_more: false, next_cursor: null } });
  const { emails, domains } = client(`${baseUrl}/base/`);
  await emails.list({ limit: 3, status: ["sent", "failed"], createdAfter: new Date(0), to: undefined, q: "a&b" });
  assert.equal(requests[0].url, "/base/emails?limit=3&status=sent%2Cfailed&created_after=1970-01-01T00%3A00%3A00.000Z&q=a%26b");
  await domains.delete("example.com", { force: true });
  assert.equal(requests[1].url, "/base/domains/example.com?force=true");
  assert.equal(requests[1].body, "");
});

test("headers", async (t) => {
  const { baseUrl, requests } = await answering(t, SENT);
  await client(baseUrl, { userAgent: "shop/1.0" }).emails.send({ to: "a@example.com" }, { headers: { "X-Own": "1", Authorization: "no", Accept: "text/html", "User-Agent": "cart/2" }, ifMatch: '"3"' });
  const { headers } = requests[0];
  assert.equal(headers.authorization, `Bearer ${KEY}`);
  assert.equal(headers["service-version"], SERVICE_VERSION);
  assert.equal(headers["user-agent"], `postrider-node/${VERSION} shop/1.0 cart/2`);
  assert.deepEqual([headers.accept, headers["content-type"], headers["x-own"], headers["if-match"]], ["application/json", "application/json", "1", '"3"']);
});

test("key and base URL of the environment", async (t) => {
  const { baseUrl, requests } = await answering(t, { json: { account: {} } });
  Object.assign(process.env, { POSTRIDER_API_KEY: "rnl_environment", POSTRIDER_BASE_URL: baseUrl });
  assert.equal((await new Postrider().account.get()).error, null);
  assert.equal(requests[0].headers.authorization, "Bearer rnl_environment");
});

test("results, or data and exceptions", async (t) => {
  const { baseUrl } = await answering(t, { headers: { "x-request-id": "req_2", "ratelimit-limit": "10", "ratelimit-remaining": "9", "ratelimit-reset": "1" }, ...SENT }, apiError(404, "not_found"));
  const postrider = client(baseUrl);
  assert.equal(postrider.lastResponse, null);
  const { data, error, headers, requestId, warnings } = await postrider.emails.send({ to: "a@example.com" });
  assert.deepEqual([data.id, error, headers["x-request-id"], requestId, warnings], ["msg_1", null, "req_2", "req_2", []]);
  assert.deepEqual(postrider.lastResponse.rateLimit, { limit: 10, remaining: 9, reset: 1 });
  assert.equal((await postrider.emails.get("msg_1")).data, null);
  assert.deepEqual([postrider.lastResponse.status, postrider.lastResponse.rateLimit], [404, null]);
  await assert.rejects(client(baseUrl, { throwOnError: true }).emails.get("msg_1"), NotFoundError);
  const { baseUrl: other } = await answering(t, SENT);
  assert.equal((await client(other, { throwOnError: true }).emails.send({ to: "a@example.com" })).id, "msg_1");
});

test("warnings are passed on, and a faulty callback does no harm", async (t) => {
  const { baseUrl } = await answering(t, { json: { id: "msg_1", status: "sent", warnings: ["`colour` is unknown"] } });
  const seen = [];
  const onWarning = (...values) => {
    seen.push(values);
    throw new Error("faulty");
  };
  const { data, error, warnings } = await client(baseUrl, { onWarning }).emails.send({ to: "a@example.com" });
  assert.deepEqual([error, warnings, data.warnings], [null, ["`colour` is unknown"], ["`colour` is unknown"]]);
  assert.deepEqual(seen, [["`colour` is unknown", "emails.send"]]);
});

test("text and bytes", async (t) => {
  const { baseUrl } = await answering(
    t, { headers: { "content-type": "message/rfc822" }, body: Buffer.from([65, 255]) }, { headers: { "content-type": "text/csv; charset=utf-8" }, body: "email\né" },
  );
  const postrider = client(baseUrl);
  assert.deepEqual((await postrider.emails.raw("msg_1")).data, new Uint8Array([65, 255]));
  assert.equal((await postrider.suppressions.export()).data, "email\né");
});

test("classes of errors by code", async (t) => {
  for (const [status, code, errorClass, name] of [
    [400, "validation_error", ValidationError, "ValidationError"], [400, "invalid_cursor", ValidationError, "ValidationError"],
    [401, "unauthorized", AuthenticationError, "AuthenticationError"], [401, undefined, ApiError, "ApiError"],
    [403, "domain_not_verified", PermissionError, "PermissionError"], [404, "not_found", NotFoundError, "NotFoundError"],
    [409, "domain_claimed", ConflictError, "ConflictError"], [409, "idempotency_conflict", IdempotencyConflictError, "IdempotencyConflictError"],
    [422, "upstream_error", UpstreamError, "UpstreamError"], [500, "internal_error", ServerError, "ServerError"], [507, "new_code", ServerError, "ServerError"],
    [418, "new_code", ApiError, "ApiError"], [418, "constructor", ApiError, "ApiError"],
  ]) {
    const { baseUrl } = await answering(t, apiError(status, code, { details: { reason: "expired" } }));
    const { error } = await client(baseUrl, { maxRetries: 0 }).account.get();
    assert.equal(error.constructor, errorClass, code);
    assert(error instanceof PostriderError);
    assert.deepEqual([error.name, error.status, error.code, error.requestId], [name, status, code ?? "", "req_1"]);
    assert.equal(JSON.parse(JSON.stringify(error)).message, `Injected ${code}`);
  }
});

test("fields of errors", async (t) => {
  const calls = async (answer) => (await client((await answering(t, answer)).baseUrl, { clock: testClock() }).emails.send({ to: "a@example.com" })).error;
  assert.deepEqual((await calls(apiError(400, "validation_error", { details: { fields: { from: "is required" } } }))).fields, { from: "is required" });
  const suppressed = await calls(apiError(422, "validation_error", { details: { suppressed: ["a@example.com"], email_id: "msg_1" } }));
  assert(suppressed instanceof SuppressedRecipientError);
  assert.deepEqual([suppressed.suppressed, suppressed.emailId], [["a@example.com"], "msg_1"]);
  const optedOut = await calls(apiError(422, "validation_error", { details: { category_unsubscribed: ["a@example.com"], category: "newsletter", email_id: "msg_1" } }));
  assert.deepEqual([optedOut.suppressed, optedOut.category], [["a@example.com"], "newsletter"]);
  const limit = await calls(apiError(429, "plan_limit", { upgrade_url: "/billing", details: { limit: "daily", used: 100, cap: 100, resets_at: "2026-01-02T00:00:00Z" } }));
  assert.deepEqual([limit.upgradeUrl, limit.limit, limit.used, limit.cap, limit.resetsAt], ["/billing", "daily", 100, 100, "2026-01-02T00:00:00Z"]);
  assert.equal((await calls(apiError(401, "unauthorized", { details: { reason: "revoked" } }))).reason, "revoked");
});

test("the CommonJS build", async (t) => {
  const { baseUrl } = await answering(t, SENT);
  const cjs = createRequire(import.meta.url)("postrider");
  const { data } = await new cjs.Postrider(KEY, { baseUrl }).emails.send({ to: "a@example.com" });
  assert.equal(data.id, "msg_1");
});
