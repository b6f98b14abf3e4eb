// The SDK against `postrider dev`. Set TEST_POSTRIDER to the server's binary; without one the tests are skipped.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import nodemailer from "nodemailer";
import { AuthenticationError, NotFoundError, Postrider, TimeoutError, ValidationError } from "postrider";
import { webhookMiddleware } from "postrider/handlers";
import { postriderTransport } from "postrider/nodemailer";
import { BINARY, startDev } from "./server.mjs";

const skip = BINARY ? false : "set TEST_POSTRIDER to the server's binary";
let dev, postrider, sender;

before(async () => {
  if (skip) return;
  dev = await startDev();
  postrider = new Postrider(dev.api_key, { baseUrl: dev.api });
  sender = `Ada <ada@${dev.domain}>`;
});

after(() => dev?.stop());

test("send, replay and read", { skip }, async () => {
  const email = { from: sender, to: ["send@example.net"], subject: "Hello", text: "Hello", tags: { flow: "welcome" }, colour: "red" };
  const { data, error, warnings } = await postrider.emails.send(email, { idempotencyKey: "send-1" });
  assert.equal(error, null);
  assert.match(data.id, /^msg_/);
  assert.equal(warnings.length, 1);
  const replay = await postrider.emails.send(email, { idempotencyKey: "send-1" });
  assert.deepEqual([replay.data.id, replay.headers["idempotent-replayed"]], [data.id, "true"]);
  const conflict = await postrider.emails.send({ ...email, subject: "Other" }, { idempotencyKey: "send-1" });
  assert.equal(conflict.error.name, "IdempotencyConflictError");
  const { data: read } = await postrider.emails.get(data.id);
  assert.deepEqual(read.email.tags, [{ name: "flow", value: "welcome" }]);
  const raw = await postrider.emails.raw(data.id);
  assert.match(new TextDecoder().decode(raw.data), /Subject: Hello/);
  assert.equal(postrider.lastResponse.status, 200);
});

test("errors", { skip }, async () => {
  assert((await postrider.emails.send({ from: sender, to: [] })).error instanceof ValidationError);
  assert((await postrider.emails.get("msg_none")).error instanceof NotFoundError);
  const { error } = await new Postrider("rnl_unknown", { baseUrl: dev.api }).emails.list();
  assert(error instanceof AuthenticationError);
  assert.match(error.requestId, /^req_/);
});

test("all pages", { skip }, async () => {
  const emails = Array.from({ length: 7 }, (_, number) => ({ from: sender, to: ["pages@example.net"], subject: `Page ${number}`, text: "x" }));
  const batch = await postrider.emails.sendBatch({ emails });
  assert.equal(batch.error, null);
  const ids = new Set();
  for await (const { id } of postrider.emails.list({ limit: 3 })) ids.add(id);
  for (const { id } of batch.data.data) assert(ids.has(id));
});

test("text, other bodies and the event stream", { skip }, async () => {
  const { data } = await postrider.domains.create({ name: "node.example", inboundEnabled: false });
  assert.match((await postrider.domains.zoneFile(data.domain.id)).data, /_domainkey/);
  const controller = new AbortController();
  const stream = postrider.webhookEvents.stream({ types: ["email.delivered"], signal: controller.signal, after: (await cursor()) });
  const { data: sent } = await postrider.emails.send({ from: sender, to: "stream@example.net", subject: "Stream", text: "x" });
  for await (const event of stream) if (event.data.email_id === sent.id) break;
});

async function cursor() {
  const page = await postrider.webhookEvents.list({ order: "asc", limit: 100 });
  return page.data.next_cursor ?? undefined;
}

test("a delivery of a webhook is verified", { skip }, async (t) => {
  let secret = "whsec_";
  let onEvent;
  const received = new Promise((resolve) => (onEvent = resolve));
  const server = createServer((request, response) => webhookMiddleware(secret, onEvent)(request, response));
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => server.close());
  const url = `http://127.0.0.1:${server.address().port}/webhooks`;
  const { data, error } = await postrider.webhooks.create({ url, events: ["email.sent"] });
  assert.equal(error, null);
  secret = data.secret;
  await postrider.emails.send({ from: sender, to: "hook@example.net", subject: "Hook", text: "x" });
  assert.equal((await received).type, "email.sent");
  await postrider.webhooks.delete(data.webhook.id);
});

test("Nodemailer sends a mail with attachment, tags and idempotency key", { skip }, async () => {
  const transporter = nodemailer.createTransport(postriderTransport({ apiKey: dev.api_key, baseUrl: dev.api }));
  await transporter.verify();
  const mail = {
    from: sender, to: "nodemailer@example.net", subject: "From Nodemailer", text: "Hello", html: '<p>Hello <img src="cid:logo"></p>',
    attachments: [{ filename: "invoice.txt", content: "42" }, { filename: "logo.png", content: Buffer.from("png"), cid: "logo" }],
    tags: { flow: "invoice" }, idempotencyKey: "invoice-42",
  };
  const info = await transporter.sendMail(mail);
  assert.match(info.messageId, /^msg_/);
  assert.equal((await transporter.sendMail({ ...mail })).messageId, info.messageId);
  const { data } = await postrider.emails.get(info.messageId);
  assert.deepEqual(data.email.tags, [{ name: "flow", value: "invoice" }]);
  const found = await postrider.dev.waitForEmail({ to: "nodemailer@example.net", subject: "From Nodemailer" });
  assert.match(found.text, /Hello/);
  assert.deepEqual(found.attachments.map(({ filename }) => filename).sort(), ["invoice.txt", "logo.png"]);
});

test("waiting for an email in vain", { skip }, async () => {
  await assert.rejects(postrider.dev.waitForEmail({ to: "nobody@example.net", timeout: 50 }), TimeoutError);
});
