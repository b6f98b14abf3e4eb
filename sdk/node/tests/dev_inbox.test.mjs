// Waiting for an email, against a server that answers as the inbox of `postrider dev` does.
import assert from "node:assert/strict";
import { test } from "node:test";
import { CancelledError, TimeoutError } from "postrider";
import { answering, client, raw, testClock } from "./server.mjs";

const NONE = { json: { total: 0, messages: [] } };
const EMAIL = { id: 7, from: "ada@example.com", to: ["a+b@example.net"], subject: "Code", text: "123456", html: null, headers: [], attachments: [] };

test("the newest email that matches, whole", async (t) => {
  const { baseUrl, requests } = await answering(t, NONE, { json: { total: 1, messages: [{ id: 7, subject: "Code" }] } }, { json: EMAIL });
  const found = await client(baseUrl).dev.waitForEmail({ to: "a+b@example.net", subject: "Code", timeout: 40_000 });
  assert.deepEqual(found, EMAIL);
  assert.match(requests[0].url, /^\/messages\?to=a%2Bb%40example\.net&subject=Code&limit=1&wait=30000ms$/);
  assert.equal(requests[2].url, "/messages/7");
});

test("no email in time", async (t) => {
  const clock = testClock();
  const { baseUrl, requests } = await answering(t, (_, response) => {
    clock.sleep(30_000);
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(NONE.json));
  });
  await assert.rejects(client(baseUrl, { clock }).dev.waitForEmail({ to: "a@example.net", timeout: 70_000 }), (error) => {
    assert(error instanceof TimeoutError);
    assert.match(error.message, /a@example\.net/);
    return true;
  });
  assert.deepEqual(requests.map(({ url }) => url.replace(/.*wait=/, "")), ["30000ms", "30000ms", "10000ms"]);
});

test("cancelling", async (t) => {
  const port = await raw(t, () => {});
  const controller = new AbortController();
  const waiting = client(`http://127.0.0.1:${port}`).dev.waitForEmail({ to: "a@example.net", signal: controller.signal });
  controller.abort();
  await assert.rejects(waiting, CancelledError);
});
