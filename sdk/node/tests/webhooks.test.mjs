// Signatures, and the receivers for web frameworks.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { test } from "node:test";
import express from "express";
import { ConfigurationError, constructEvent, generateTestHeader, SignatureError, TimestampError } from "postrider";
import { webhookHandler, webhookMiddleware } from "postrider/handlers";
import { client } from "./server.mjs";

const SECRET = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
const BODY = '{"type":"email.delivered","created_at":"2026-01-01T10:00:01.000Z","data":{"event_id":"evt_01TEST","email_id":"msg_01TEST","status":"delivered"}}';
const TIME = 1767261601;
const V1 = "73d1d171b7792518bf34eb652caafd4d13e94b75b22b20e832da53925b9329e7";
const SERVICE = { "Service-Signature": `t=${TIME},v1=${V1}` };
const STANDARD = { "webhook-id": "evt_01TEST", "webhook-timestamp": String(TIME), "webhook-signature": "v1,leGq6P5XZxszBtppSdgPTG85IB61BP80s0YeiHeC2vU=" };
const NOW = { now: TIME };

test("the vector", async () => {
  assert.deepEqual(await generateTestHeader({ payload: BODY, secret: SECRET, timestamp: TIME, id: "evt_01TEST" }), { ...SERVICE, ...STANDARD });
  for (const headers of [
    SERVICE, STANDARD, { ...SERVICE, ...STANDARD }, new Headers(SERVICE), Object.entries(STANDARD), new Map(Object.entries(SERVICE)), { "SERVICE-SIGNATURE": [SERVICE["Service-Signature"]] },
    { "service-signature": `t=${TIME}, v1=${"0".repeat(64)}, v1=${V1}` }, { ...STANDARD, "webhook-signature": `v2,x v1,AAAA ${STANDARD["webhook-signature"]}` },
    { "service-signature": "nonsense", ...STANDARD },
  ]) {
    for (const body of [BODY, new TextEncoder().encode(BODY), Buffer.from(BODY), new TextEncoder().encode(BODY).buffer]) {
      const event = await constructEvent(body, headers, SECRET, NOW);
      assert.equal(event.data.email_id, "msg_01TEST");
    }
  }
});

test("repeated headers", async () => {
  const wrong = `t=${TIME},v1=${"0".repeat(64)}`;
  const right = SERVICE["Service-Signature"];
  const { "webhook-signature": standard } = STANDARD;
  for (const headers of [
    [["Service-Signature", wrong], ["service-signature", right]], { "service-signature": [right, wrong] }, { "service-signature": `${wrong},${right}` },
    { ...STANDARD, "webhook-signature": ["v1,AAAA", standard] }, { ...STANDARD, "webhook-signature": `v1,AAAA,${standard}` },
  ]) {
    assert.equal((await constructEvent(BODY, headers, SECRET, NOW)).type, "email.delivered");
  }
  for (const name of ["webhook-id", "webhook-timestamp"]) {
    await assert.rejects(constructEvent(BODY, { ...STANDARD, [name]: [STANDARD[name], STANDARD[name]] }, SECRET, NOW), SignatureError);
  }
  await assert.rejects(constructEvent(BODY, { "service-signature": ["t=1,v1=00", right] }, SECRET, NOW), SignatureError);
});

test("several secrets, and one with a line break", async () => {
  assert.equal((await constructEvent(BODY, SERVICE, ["whsec_AAAA", SECRET], NOW)).type, "email.delivered");
  assert.equal((await constructEvent(BODY, SERVICE, `${SECRET}\n`, NOW)).type, "email.delivered");
  assert.equal((await client("https://example.com").webhooks.constructEvent(BODY, STANDARD, SECRET, NOW)).type, "email.delivered");
});

test("wrong signatures", async () => {
  for (const [body, headers, secret] of [
    [`${BODY} `, SERVICE, SECRET], [BODY, SERVICE, "whsec_AAAA"], [BODY, { ...STANDARD, "webhook-id": "evt_2" }, SECRET], [BODY, {}, SECRET],
    [BODY, { "service-signature": "nonsense" }, SECRET], [BODY, { "service-signature": `t=${TIME},v1=ff` }, SECRET], [BODY, { "service-signature": `v1=${V1}` }, SECRET],
    [BODY, { "service-signature": `t=${TIME + 1},v1=${V1}` }, SECRET], [BODY, { ...STANDARD, "webhook-signature": "v1,é" }, SECRET],
    [BODY, { "service-signature": `t=${TIME},v1=` }, SECRET], [BODY, STANDARD, "whsec_not base64!"],
  ]) {
    await assert.rejects(constructEvent(body, headers, secret, NOW), (error) => error instanceof SignatureError && !(error instanceof TimestampError));
  }
});

test("times", async () => {
  for (const headers of [SERVICE, STANDARD]) {
    for (const now of [TIME - 300, TIME + 300]) await constructEvent(BODY, headers, SECRET, { now });
    for (const now of [TIME - 301, TIME + 301]) {
      await assert.rejects(constructEvent(BODY, headers, SECRET, { now }), (error) => {
        assert(error instanceof TimestampError);
        assert.match(error.message, /2026-01-01T10:00:01.*2026-01-01T\d\d:\d\d/);
        return true;
      });
    }
    await constructEvent(BODY, headers, SECRET, { now: TIME + 1000, tolerance: 1000 });
  }
});

test("what is no webhook", async () => {
  await assert.rejects(constructEvent(JSON.parse(BODY), SERVICE, SECRET, NOW), ConfigurationError);
  await assert.rejects(constructEvent(BODY, SERVICE, "", NOW), ConfigurationError);
  await assert.rejects(constructEvent(BODY, SERVICE, [], NOW), ConfigurationError);
  await assert.rejects(constructEvent(BODY, SERVICE, process.env.NO_SUCH_SECRET, NOW), ConfigurationError);
  assert.equal((await constructEvent(BODY, SERVICE, [undefined, SECRET], NOW)).type, "email.delivered");
  for (const payload of [
    "[]", "null", "no json", '{"type":"email.sent"}', '{"type":"email.sent","data":null}', '{"type":"email.sent","data":[]}', '{"type":"email.sent","data":"x"}',
    '{"type":5,"data":{}}', '{"data":{}}',
  ]) {
    const headers = await generateTestHeader({ payload, secret: SECRET });
    await assert.rejects(constructEvent(payload, headers, SECRET), (error) => error instanceof SignatureError);
  }
});

test("an unknown type is passed on", async () => {
  const payload = '{"type":"moon.landed","created_at":"2026-01-01T10:00:01.000Z","data":{"a":1}}';
  const event = await constructEvent(payload, await generateTestHeader({ payload, secret: SECRET }), SECRET);
  assert.deepEqual([event.type, event.data], ["moon.landed", { a: 1 }]);
});

const signed = async () => generateTestHeader({ payload: BODY, secret: SECRET });

test("a handler of the Fetch API", async () => {
  const events = [];
  const POST = webhookHandler(SECRET, (event) => events.push(event.type));
  const request = (headers, body = BODY) => new Request("https://example.com/webhooks", { method: "POST", headers, body });
  assert.equal((await POST(request(await signed()))).status, 200);
  assert.equal((await POST(request({}))).status, 401);
  assert.equal((await POST(request(await signed(), "x".repeat(2 << 20)))).status, 413);
  assert.deepEqual(events, ["email.delivered"]);
  const failing = webhookHandler(SECRET, () => Promise.reject(new Error("database")));
  await assert.rejects(failing(request(await signed())), /database/);
  await assert.rejects(webhookHandler(undefined, () => {})(request(await signed())), ConfigurationError);
});

test("middleware for Express and Node", async (t) => {
  const events = [];
  const receive = webhookMiddleware(SECRET, (event) => events.push(event.type));
  const app = express();
  app.post("/unparsed", receive);
  app.post("/raw", express.raw({ type: "application/json" }), receive);
  app.post("/parsed", express.json(), receive);
  app.post("/failing", webhookMiddleware(SECRET, () => Promise.reject(new Error("database"))));
  app.use((error, _request, response, _next) => response.status(500).end(error.message));
  for (const listener of [app, (request, response) => receive(request, response)]) {
    const server = createServer(listener);
    await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
    t.after(() => server.close());
    const post = async (path, headers) => {
      const response = await fetch(`http://127.0.0.1:${server.address().port}${path}`, { method: "POST", headers: { "content-type": "application/json", ...headers }, body: BODY });
      return [response.status, await response.text()];
    };
    assert.deepEqual(await post("/unparsed", await signed()), [200, ""]);
    assert.equal((await post("/unparsed", {}))[0], 401);
    if (listener !== app) continue;
    assert.deepEqual(await post("/raw", await signed()), [200, ""]);
    assert.match((await post("/parsed", await signed()))[1], /express\.raw/);
    assert.deepEqual(await post("/failing", await signed()), [500, "database"]);
  }
  assert.equal(events.length, 3);
});
