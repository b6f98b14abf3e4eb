// Secrets and money need a proof of identity once in 15 minutes. The clock of a server of its own is moved on, so that a
// session is older than that.
import assert from "node:assert/strict";
import { join } from "node:path";
import { start } from "../server.mjs";
import { axe, violations } from "../audit.mjs";

const PASSWORD = "correct horse battery";
const AFTER_THE_PERIOD_S = "1000";

/** A new owner with a password, signed in for longer than the period. */
async function openLate(w, settings, visit) {
  const program = await start({ binary: w.binary, shopPort: "2839" });
  const context = await w.context.browser().newContext(settings);
  context.setDefaultTimeout(10_000);
  try {
    const page = await context.newPage();
    const press = (name) => page.getByRole("button", { name, exact: true }).click();
    await page.goto(program.account("owner@late.example"));
    await press("Sign in");
    await page.waitForURL("**/dashboard");
    await page.goto(program.url + "/dashboard/security");
    await page.getByLabel("New password").fill(PASSWORD);
    await press("Set the password");
    await page.getByText("The change was saved.").waitFor();
    program.operator("clock", "advance", AFTER_THE_PERIOD_S);
    await visit({ page, press, program });
  } finally {
    await context.close();
    await program.stop();
  }
}

/** Creates an API key: first without a proof, then with a wrong one, then with the password. */
const createKey = (settings) => ({
  milliseconds: 120_000,
  run: (w) =>
    openLate(w, settings, async ({ page, press, program }) => {
      await page.goto(program.url + "/dashboard/api-keys/new");
      await page.getByLabel("Name", { exact: true }).fill("Shop backend");
      await press("Create API key");
      const proof = page.getByLabel("Your password, or a one-time password");
      await proof.waitFor();
      assert.match(await page.getByRole("alert").textContent(), /Confirm that it is you/);
      assert.equal(await page.getByLabel("Name", { exact: true }).inputValue(), "Shop backend", "what was entered stays");
      const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(overflow <= 0, `${overflow} px wider than the window`);
      if (settings.javaScriptEnabled !== false) {
        assert.deepEqual(await violations(page, axe(w.modules)), []);
      }
      const shot = (name) => process.env.SHOTS && page.screenshot({ path: join(process.env.SHOTS, name), fullPage: true });
      await shot(`reauthentication-${settings.viewport.width}.png`);
      await proof.fill("a wrong password");
      await press("Create API key");
      await page.locator("[aria-invalid=true]").waitFor();
      assert.equal(await page.getByText("shown only once").count(), 0, "no key without the proof");
      await shot(`reauthentication-wrong-${settings.viewport.width}.png`);
      await page.getByLabel("Your password, or a one-time password").fill(PASSWORD);
      await press("Create API key");
      await page.locator(".secret code").first().waitFor();
      await shot(`reauthentication-done-${settings.viewport.width}.png`);
      // The proof counts for the next action too.
      await page.goto(program.url + "/dashboard/api-keys/new");
      await page.getByLabel("Name", { exact: true }).fill("Second key");
      await press("Create API key");
      await page.locator(".secret code").first().waitFor();
    }),
});

export const withServer = {
  "a late session proves its identity before it gets a secret": createKey({
    viewport: { width: 1280, height: 900 },
    colorScheme: "light",
  }),
  "a late session proves its identity without JavaScript": createKey({
    viewport: { width: 320, height: 900 },
    colorScheme: "dark",
    javaScriptEnabled: false,
  }),
};
