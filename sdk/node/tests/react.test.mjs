import assert from "node:assert/strict";
import { register } from "node:module";
import { test } from "node:test";
import { ConfigurationError, Postrider } from "postrider";
import { answering, KEY } from "./server.mjs";

// In the place of @react-email/render, which is no dependency: a renderer of `{ type, text }`.
const renderer = `export const render = async ({ type, text }, { plainText } = {}) => {
  if (!type) throw new Error("no element");
  return plainText ? text : "<" + type + ">" + text + "</" + type + ">";
};`;
const hooks = `let isInstalled = false;
export const initialize = ({ port }) => port.on("message", () => { isInstalled = true; port.postMessage("installed"); });
export async function resolve(specifier, context, next) {
  if (specifier !== "@react-email/render") return next(specifier, context);
  if (!isInstalled) throw new Error("Cannot find package");
  return { url: ${JSON.stringify(`data:text/javascript,${encodeURIComponent(renderer)}`)}, shortCircuit: true };
}`;
const { port1, port2 } = new MessageChannel();
register(`data:text/javascript,${encodeURIComponent(hooks)}`, { data: { port: port2 }, transferList: [port2] });
const install = () => new Promise((resolve) => { port1.once("message", resolve); port1.postMessage("install"); });

const SENT = { json: { id: "msg_1", status: "sent" } };
const email = { from: "ada@example.com", to: "grace@example.net", subject: "Hello", react: { type: "p", text: "Hi" } };

test("`react` is rendered by the optional peer", async (t) => {
  const { baseUrl, requests } = await answering(t, SENT, SENT, SENT, SENT);
  const postrider = new Postrider(KEY, { baseUrl });
  const missing = await postrider.emails.send(email);
  assert(missing.error instanceof ConfigurationError && missing.error.message.includes("npm install @react-email/render"), missing.error?.message);
  assert.match(missing.error.message, /Cannot find package/);
  assert.equal(missing.error.cause?.message, "Cannot find package");
  await install();
  port1.close();
  await postrider.emails.send(email);
  await postrider.emails.send({ ...email, text: "" });
  await postrider.emails.sendBatch({ emails: [email, { from: "ada@example.com", to: "grace@example.net", text: "Plain" }] });
  const bodies = requests.map(({ body }) => JSON.parse(body));
  assert.deepEqual(bodies[0], { from: "ada@example.com", to: "grace@example.net", subject: "Hello", html: "<p>Hi</p>", text: "Hi" });
  assert.equal(bodies[1].text, "");
  assert.deepEqual(bodies[2].emails.map(({ html, text, react }) => [html, text, react]), [["<p>Hi</p>", "Hi", undefined], [undefined, "Plain", undefined]]);
  for (const wrong of [{ ...email, html: "<p>" }, { ...email, react: {} }]) {
    assert((await postrider.emails.send(wrong)).error instanceof ConfigurationError);
  }
  assert.equal(requests.length, 3);
});
