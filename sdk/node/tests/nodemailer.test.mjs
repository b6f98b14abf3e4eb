// The transport with Nodemailer's own classes, against a server that records requests.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { test } from "node:test";
import nodemailer from "nodemailer";
import { CancelledError, ConfigurationError, PermissionError } from "postrider";
import { postriderTransport } from "postrider/nodemailer";
import { answering, apiError, KEY } from "./server.mjs";

const SENT = { json: { id: "msg_1", status: "sent", warnings: ["w"] } };

async function mailer(t, ...answers) {
  const { baseUrl, requests } = await answering(t, ...answers);
  return { transporter: nodemailer.createTransport(postriderTransport({ apiKey: KEY, baseUrl, maxRetries: 0 })), requests };
}

test("all fields of a mail", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "postrider-"));
  t.after(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, "from disk.txt"), "disk");
  const { transporter, requests } = await mailer(t, SENT);
  const info = await transporter.sendMail({
    from: { name: 'Ada "The First"', address: "ada@example.com" },
    to: ["Grace Höpper <grace@example.net>", { name: "Bob, Jr.", address: "bob@example.net" }],
    cc: "A group: one@example.net, two@example.net;",
    bcc: "blind@example.net",
    replyTo: "reply@example.com",
    subject: "Hello ✓",
    html: Readable.from(["<p>Hel", "lo</p>"]),
    text: "Hello",
    inReplyTo: "<1@example.com>",
    references: ["<0@example.com>", "<1@example.com>"],
    priority: "high",
    list: { unsubscribe: "https://example.com/u" },
    headers: { "X-Order": "7", "Idempotency-Key": "order-7" },
    attachments: [
      { filename: "text.txt", content: "é" },
      { filename: "buffer.bin", content: Buffer.from([0, 255]) },
      { filename: "base64.txt", content: "aGk=", encoding: "base64" },
      { filename: "stream.csv", content: Readable.from(["a,", "b"]) },
      { path: join(folder, "from disk.txt"), contentDisposition: "attachment" },
      { filename: "logo.png", content: Buffer.from("png"), cid: "logo", contentDisposition: "inline", headers: {} },
    ],
    tags: { flow: "welcome" },
    category: "product",
    scheduledAt: new Date("2026-12-01T00:00:00Z"),
    template: "welcome",
    variables: { firstName: "Grace" },
    unsubscribe: true,
  });
  const { json, headers } = requests[0];
  assert.equal(headers["idempotency-key"], "order-7");
  assert.deepEqual(json, {
    from: { email: "ada@example.com", name: 'Ada "The First"' },
    to: ['"Grace Höpper" <grace@example.net>', '"Bob, Jr." <bob@example.net>'],
    cc: ["one@example.net", "two@example.net"],
    bcc: ["blind@example.net"],
    reply_to: ["reply@example.com"],
    subject: "Hello ✓",
    html: "<p>Hello</p>",
    text: "Hello",
    headers: {
      "X-Order": "7", "X-Priority": "1 (Highest)", Importance: "high", references: "<0@example.com> <1@example.com>", "in-reply-to": "<1@example.com>",
      "list-unsubscribe": "<https://example.com/u>",
    },
    attachments: [
      { name: "text.txt", content_type: "text/plain", data: "w6k=" },
      { name: "buffer.bin", content_type: "application/octet-stream", data: "AP8=" },
      { name: "base64.txt", content_type: "text/plain", data: "aGk=" },
      { name: "stream.csv", content_type: "text/csv", data: "YSxi" },
      { name: "from disk.txt", content_type: "text/plain", data: "ZGlzaw==" },
      { name: "logo.png", content_type: "image/png", data: "cG5n", content_id: "logo" },
    ],
    tags: { flow: "welcome" },
    category: "product",
    scheduled_at: "2026-12-01T00:00:00.000Z",
    template: "welcome",
    variables: { firstName: "Grace" },
    unsubscribe: true,
  });
  const all = ["grace@example.net", "bob@example.net", "one@example.net", "two@example.net", "blind@example.net"];
  assert.equal(info.messageId, "msg_1");
  assert.equal(info.response, "200 msg_1 sent");
  assert.deepEqual([info.accepted, info.rejected, info.warnings, info.envelope.from], [all, [], ["w"], "ada@example.com"]);
});

test("options as headers of SMTP submission", async (t) => {
  const { transporter, requests } = await mailer(t, SENT);
  const headers = {
    "Service-Tags": "flow=welcome, step=2", "Service-Category": "product", "Service-Template": "welcome", "Service-Variables": '{"name":"Grace"}',
    "Service-Unsubscribe": "false", "Service-Scheduled-At": "2026-12-01T00:00:00Z", "Service-Idempotency-Key": "k",
  };
  await transporter.sendMail({ from: "a@example.com", to: "b@example.net", headers });
  assert.deepEqual(requests[0].json, {
    from: { email: "a@example.com" }, to: ["b@example.net"], tags: [{ name: "flow", value: "welcome" }, { name: "step", value: "2" }], category: "product",
    template: "welcome", variables: { name: "Grace" }, unsubscribe: false, scheduled_at: "2026-12-01T00:00:00Z",
  });
  assert.equal(requests[0].headers["idempotency-key"], "k");
  await transporter.sendMail({ from: "a@example.com", to: "b@example.net", headers: [{ key: "Service-Tags", value: '{"a":"b"}' }, { key: "X-A", value: "1" }] });
  assert.deepEqual([requests[1].json.tags, requests[1].json.headers], [{ a: "b" }, { "X-A": "1" }]);
});

test("what the API cannot send is refused", async (t) => {
  const { transporter, requests } = await mailer(t, SENT);
  for (const mail of [
    { raw: "From: a" }, { alternatives: [{ content: "x" }] }, { icalEvent: { content: "BEGIN" } }, { envelope: { from: "a@example.com", to: "b@example.net" } },
    { messageId: "<1@example.com>" }, { headers: { "Service-Colour": "red" } }, { headers: { "Service-Variables": "no json" } },
    { headers: { "X-Twice": ["1", "2"] } }, { headers: [{ key: "X-Twice", value: "1" }, { key: "x-twice", value: "2" }] },
    { attachments: [{ raw: "Content-Type: text/plain\r\n\r\nx" }] }, { attachments: [{ content: "x", headers: { "X-A": "1" } }] },
  ]) {
    await assert.rejects(transporter.sendMail({ from: "a@example.com", to: "b@example.net", text: "x", ...mail }), ConfigurationError);
  }
  for (const [attachment, expected] of [
    [{ content: "x", contentDisposition: "inline" }, /without `cid` must be `attachment`/],
    [{ content: "x", cid: "x", contentDisposition: "attachment" }, /with `cid` must be `inline`/],
  ]) {
    const mail = { from: "a@example.com", to: "b@example.net", text: "x", attachments: [attachment] };
    await assert.rejects(transporter.sendMail(mail), (error) => error instanceof ConfigurationError && expected.test(error.message));
  }
  assert.equal(requests.length, 0);
});

test("an option as field and as header is refused", async (t) => {
  const { transporter, requests } = await mailer(t, SENT);
  for (const [name, mail] of [
    ["idempotencyKey", { idempotencyKey: "a", headers: { "Idempotency-Key": "b" } }],
    ["idempotencyKey", { headers: { "Service-Idempotency-Key": "a", "Idempotency-Key": "b" } }],
    ["category", { category: "newsletter", headers: { "Service-Category": "product" } }],
    ["tags", { tags: { a: "b" }, headers: { "Service-Tags": "a=b" } }],
    ["unsubscribe", { unsubscribe: false, headers: { "Service-Unsubscribe": "true" } }],
  ]) {
    const expected = new RegExp(`^\`${name}\` occurs more than once`);
    const sent = transporter.sendMail({ from: "a@example.com", to: "b@example.net", text: "x", ...mail });
    await assert.rejects(sent, (error) => error instanceof ConfigurationError && expected.test(error.message));
  }
  assert.equal(requests.length, 0);
});

test("errors, cancelling, callbacks and verify", async (t) => {
  const { transporter } = await mailer(t, apiError(403, "domain_not_verified"), SENT, { json: { emails: [], has_more: false, next_cursor: null } }, apiError(403, "ip_not_allowed"));
  const mail = { from: "a@example.com", to: "b@example.net", text: "x" };
  await assert.rejects(transporter.sendMail(mail), PermissionError);
  const info = await new Promise((resolve, reject) => transporter.sendMail(mail, (error, sent) => (error ? reject(error) : resolve(sent))));
  assert.equal(info.messageId, "msg_1");
  assert.equal(await transporter.verify(), true);
  await assert.rejects(new Promise((resolve, reject) => transporter.verify((error, success) => (error ? reject(error) : resolve(success)))), PermissionError);
  await assert.rejects(transporter.sendMail({ ...mail, attachments: [{ path: "/no-such-directory/file" }] }), /ENOENT/);
  const stuck = await mailer(t, () => controller.abort());
  const controller = new AbortController();
  await assert.rejects(stuck.transporter.sendMail({ ...mail, signal: controller.signal }), (error) => error instanceof CancelledError || error.name === "AbortError");
});
