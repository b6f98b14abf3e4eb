// The examples of the README run against `postrider dev`.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { generateTestHeader, Postrider } from "postrider";
import { BINARY, startDev } from "./server.mjs";

const skip = BINARY ? false : "set TEST_POSTRIDER to the server's binary";
const root = fileURLToPath(new URL("..", import.meta.url));
const examples = readFileSync(join(root, "README.md"), "utf8").split(/^```js\n/m).slice(1).map((part) => part.split(/^```/m)[0]);
const folder = mkdtempSync(join(tmpdir(), "postrider-readme-"));
const files = examples.map((_, number) => join(folder, `${number}.mjs`));
let dev;

before(async () => {
  mkdirSync(join(folder, "node_modules"));
  symlinkSync(root, join(folder, "node_modules/postrider"));
  for (const name of ["express", "nodemailer"]) symlinkSync(join(root, "node_modules", name), join(folder, "node_modules", name));
  examples.forEach((text, number) => writeFileSync(files[number], text));
  if (!skip) dev = await startDev();
});

after(async () => {
  await dev?.stop();
  rmSync(folder, { recursive: true });
});

for (const [number, text] of examples.entries()) {
  test(`example ${number}: ${text.split("\n").find((line) => line.startsWith("import"))}`, { skip }, async () => {
    const environment = { ...process.env, POSTRIDER_API_KEY: dev.api_key, POSTRIDER_BASE_URL: dev.api, WEBHOOK_SECRET: "whsec_AAAA" };
    const isStream = text.includes(".stream(");
    const shown = await new Promise((resolve, reject) => {
      const child = execFile(process.execPath, [files[number]], { env: environment }, (error, output, errors) =>
        error && !isStream ? reject(error) : resolve(output + errors));
      if (!isStream) return;
      // The stream has no end: it is stopped at its first event.
      child.stdout.once("data", () => child.kill());
      const sending = setInterval(() => sendOne(), 200);
      child.once("exit", () => clearInterval(sending));
    });
    assert.doesNotMatch(shown, /Error|undefined/);
  });
}

function sendOne() {
  return new Postrider(dev.api_key, { baseUrl: dev.api }).emails.send({ from: `ada@${dev.domain}`, to: "a@example.net", subject: "x", text: "x" });
}

test("the handler of the README answers", async () => {
  process.env.WEBHOOK_SECRET = "whsec_AAAA";
  const { POST } = await import(pathToFileURL(files[examples.findIndex((text) => text.includes("webhookHandler"))]));
  const payload = '{"type":"email.sent","created_at":"x","data":{}}';
  const headers = await generateTestHeader({ payload, secret: "whsec_AAAA" });
  assert.equal((await POST(new Request("https://example.com/", { method: "POST", body: payload, headers }))).status, 200);
});
