// An app from its consent to its end: it asks for access, a person sets its rules, approves what it sends, and revokes it.
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { open } from "./dashboard.mjs";

const NAME = "Editor of the case";

/** A program that registered itself, as OAuth clients do. */
async function program(w) {
  // A page that exists: a redirect cannot be answered by the test, and a page that is missing is an error of the browser.
  const redirect = w.program.url + "/docs";
  const post = async (path, body, type = "application/json") => {
    const answer = await fetch(w.program.url + path, { method: "POST", headers: { "content-type": type }, body });
    assert.ok(answer.ok, `${path}: ${answer.status} ${await answer.clone().text()}`);
    return answer.json();
  };
  const { client_id } = await post("/oauth/register", JSON.stringify({ client_name: NAME, redirect_uris: [redirect] }));
  const verifier = randomBytes(32).toString("base64url");
  const question = new URLSearchParams({
    response_type: "code",
    client_id,
    redirect_uri: redirect,
    scope: "read send",
    state: "of-the-case",
    code_challenge: createHash("sha256").update(verifier).digest("base64url"),
    code_challenge_method: "S256",
  });
  const exchange = (code) => {
    const form = { grant_type: "authorization_code", client_id, code, code_verifier: verifier, redirect_uri: redirect };
    return post("/oauth/token", new URLSearchParams(form).toString(), "application/x-www-form-urlencoded");
  };
  return { redirect, url: `${w.program.url}/dashboard/authorize?${question}`, exchange };
}

/** Calls the API with the app's token. */
const caller = (w, token) => (method, path, body) => {
  const headers = { authorization: "Bearer " + token, "content-type": "application/json" };
  return fetch(w.program.url + path, { method, headers, ...(body && { body: JSON.stringify(body) }) });
};

const fromConsentToEnd = (settings) => ({
  milliseconds: 120_000,
  run: (w) =>
    open(w, settings, async (page) => {
      const app = await program(w);
      const press = (name) => page.getByRole("button", { name, exact: true }).click();
      const overflow = () => page.evaluate(() => document.documentElement.scrollWidth - innerWidth);

      await page.goto(app.url);
      assert.match(await page.locator("main").textContent(), new RegExp(NAME));
      assert.ok((await overflow()) <= 0, "the page of consent fits the window");
      await page.getByLabel("May send only to").fill("*@example.net");
      await page.getByLabel("Send email", { exact: true }).check();
      await press("Allow");
      await page.waitForURL(app.redirect + "?**");
      const answer = new URL(page.url()).searchParams;
      assert.equal(answer.get("state"), "of-the-case");
      const { access_token } = await app.exchange(answer.get("code"));
      const call = caller(w, access_token);

      const email = (to) => ({ from: "Ada <ada@example.com>", to: [to], subject: "From the app", text: "Hello" });
      const refused = await call("POST", "/emails", email("eve@evil.example"));
      assert.equal(refused.status, 403, "the rules of the consent hold");
      const held = await call("POST", "/emails", email("grace@example.net"));
      assert.equal(held.status, 202);
      const { approval_id, url } = await held.json();
      await page.goto(w.program.url + new URL(url).pathname);
      assert.match(await page.locator("main").textContent(), /grace@example\.net/);
      assert.ok((await overflow()) <= 0, "the page of the approval fits the window");
      await press("Approve and carry out");
      await page.getByText("Approved and executed").first().waitFor();
      const { approval } = await (await call("GET", `/approvals/${approval_id}`)).json();
      assert.equal(approval.status, "executed");

      await page.goto(w.program.url + "/dashboard/connected-apps");
      await page.getByRole("link", { name: NAME }).first().click();
      await page.getByRole("heading", { name: NAME }).waitFor();
      assert.equal(await page.getByLabel("May send only to").inputValue(), "*@example.net");
      await press("End the access");
      await page.waitForURL("**/dashboard/connected-apps**");
      assert.equal((await call("GET", "/account")).status, 401, "the token ends at once");
    }),
});

export const withServer = {
  "an app from its consent to its end": fromConsentToEnd({ viewport: { width: 1280, height: 900 }, colorScheme: "light" }),
  "an app from its consent to its end without JavaScript": fromConsentToEnd({
    viewport: { width: 320, height: 900 },
    colorScheme: "dark",
    withoutScript: true,
  }),
};
