// The operator's console of the real server: every page that links lead to, at two widths, in both colour schemes, with
// and without JavaScript; sign-in, and a change by filter.
import assert from "node:assert/strict";
import { request } from "node:http";
import { join } from "node:path";
import { auditor } from "../audit.mjs";
import { HOSTILE } from "./dashboard.mjs";

const BROWSER_MS = 600_000;
const PAGES_MAX = 120;
/** Pages of one kind that are opened. */
const EACH_MAX = 3;

let filled;
/** Fills the queue once: mail that waits, is held and was delivered, with hostile strings; an override; findings. */
function fill(w) {
  filled ??= (async () => {
    const { api, operator } = w.program;
    const send = (fields) => api("POST", "/emails", { from: "Ada <ada@example.com>", text: "Hello", ...fields });
    const strange = { from: `${JSON.stringify(HOSTILE.replace(/[^ -~]/g, ""))} <ada@example.com>`, subject: HOSTILE };
    const waiting = [];
    for (let n = 0; n < 4; n += 1) {
      const sent = await send({ to: ["deferred@simulator.postrider.test"], subject: `Waits ${n}`, ...(n === 0 && strange) });
      waiting.push(sent.id);
    }
    await send({ to: ["bounced@simulator.postrider.test"], subject: "Bounces" });
    await send({ to: ["ann@example.net"], subject: "Arrives" });
    operator("queue", "hold", waiting[1]);
    operator("destination", "suspend", "--to", "slow.example", "--because", "They asked us to");
    operator("destination", "pace", "--mail-host", "mx.busy.example", "--connections", "2", "--per-second", "0.5");
    return waiting;
  })();
  return filled;
}

/** A context that is signed in, and collects what went wrong. */
async function open(w, options, visit) {
  const waiting = await fill(w);
  const { withoutScript, ...settings } = options;
  const context = await w.context.browser().newContext(settings);
  const wrong = [];
  const link = new URL(w.program.operator("console").url);
  const { origin } = link;
  context.on("console", (message) => wrong.push(`${message.type()}: ${message.text()} ${message.location().url}`));
  context.on("dialog", (dialog) => wrong.push(`dialog ${dialog.message()}`) && dialog.dismiss());
  context.on("weberror", (error) => wrong.push(error.error().message));
  context.on("request", (sent) => {
    if (!/^data:/.test(sent.url()) && new URL(sent.url()).origin !== origin) wrong.push(sent.url());
  });
  await context.addInitScript(() => {
    document.addEventListener("securitypolicyviolation", (event) => console.error(`policy: ${event.violatedDirective} ${event.blockedURI}`));
  });
  const page = await context.newPage();
  try {
    if (withoutScript) await page.route("**/console/assets/*.js", (route) => route.fulfill({ body: "" }));
    await page.goto(link.href);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.waitForURL("**/console");
    await visit({ page, wrong, origin, waiting });
    assert.deepEqual(wrong, []);
  } finally {
    await context.close();
  }
}

/** The kind of a path: ids, names and queries are left out. */
const kind = (path) => path.replace(/\/[a-z]+_[0-9A-Z]{20,}/g, "/{id}").replace(/\?.*/, "");

/** A picture of each page in the directory SHOTS, for people to look at. */
const shotPath = (path, { viewport, colorScheme = "none" }) =>
  join(process.env.SHOTS, `console-${viewport.width}-${colorScheme}`, kind(path).replaceAll("/", "_") + ".png");

/** Follows all links from the overview, opens pages of each kind, and passes each on. */
async function openEach(w, options, check = () => {}) {
  await open(w, options, async ({ page, wrong, origin }) => {
    const [ahead, seen, kinds] = [["/console"], new Set(["/console"]), new Map()];
    for (let path; (path = ahead.shift()) && seen.size < PAGES_MAX; ) {
      const response = await page.goto(origin + path);
      const problems = (await check(page, response)) ?? [];
      const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      if (overflow > 0) problems.push(`${overflow} px wider than the window`);
      if (response.status() !== 200) problems.push(`status ${response.status()}`);
      if (problems.length) wrong.push(`${path}: ${problems.join("\n")}`);
      if (process.env.SHOTS) await page.screenshot({ path: shotPath(path, options), fullPage: true });
      for (const link of await page.locator("a[href]").evaluateAll((all) => all.map(({ href }) => href))) {
        const url = new URL(link);
        const next = url.pathname + url.search;
        const number = kinds.get(kind(next)) ?? 0;
        if (url.origin !== origin || !/^\/console(\/|$)/.test(url.pathname) || seen.has(next) || number >= EACH_MAX) continue;
        kinds.set(kind(next), number + 1);
        seen.add(next);
        ahead.push(next);
      }
    }
    assert.ok(kinds.size >= 24, `only ${[...kinds.keys()]}`);
    console.log(`      ${seen.size} pages of ${kinds.size} kinds`);
  });
}

const everyPage = (width, colorScheme, withoutScript = false) => ({
  milliseconds: BROWSER_MS,
  async run(w) {
    const audit = auditor(w, width, !withoutScript);
    await openEach(w, { viewport: { width, height: 900 }, colorScheme, withoutScript }, audit);
  },
});

/** The status of a request that names another host. */
const statusFor = (origin, host, path) =>
  new Promise((done, fail) => {
    const sent = request(origin + path, { headers: { host } }, (answer) => done(answer.resume().statusCode));
    sent.on("error", fail).end();
  });

/** The change by filter, with or without JavaScript. */
const holdsByFilter = (javaScriptEnabled) => ({
  milliseconds: BROWSER_MS,
  run: (w) =>
    open(w, { javaScriptEnabled }, async ({ page, origin, waiting }) => {
      await page.goto(origin + "/console/mail");
      await page.getByLabel("Recipient domain").fill("simulator.postrider.test");
      if (!javaScriptEnabled) await page.getByRole("button", { name: "Filter" }).click();
      await page.waitForURL("**/console/mail?to=simulator*");
      for (const [link, button] of [["Release…", "Release"], ["Hold…", "Hold"]]) {
        await page.goto(origin + "/console/mail?to=simulator.postrider.test");
        await page.getByRole("link", { name: link }).click();
        await page.getByText(/^4 recipients/).waitFor();
        await page.getByRole("main").getByRole("button", { name: button, exact: true }).click();
        await page.waitForURL(/\/console\/commands\/\d+$/);
        await page.getByText(/recipients were changed/).waitFor();
      }
      await page.goto(`${origin}/console/emails/${waiting[2]}`);
      await page.getByText("held by the operator").first().waitFor();
      await page.getByRole("button", { name: "Release" }).click();
      await page.getByText("The email is released").waitFor();
      w.program.operator("queue", "hold", waiting[1]);
    }),
});

export const withServer = {
  "every page, 1280 px, light": everyPage(1280, "light"),
  "every page, 320 px, dark, without the script": everyPage(320, "dark", true),

  "every page without JavaScript, 320 px": {
    milliseconds: BROWSER_MS,
    run: (w) => openEach(w, { viewport: { width: 320, height: 900 }, javaScriptEnabled: false }),
  },

  "mail is held by filter": holdsByFilter(true),
  "mail is held by filter, without JavaScript": holdsByFilter(false),

  "the checks run in the background": {
    milliseconds: BROWSER_MS,
    run: (w) =>
      open(w, { viewport: { width: 1280, height: 900 } }, async ({ page, origin }) => {
        await page.goto(origin + "/console/doctor");
        await page.getByRole("button", { name: /Run the checks/ }).click();
        // The page is loaded again by itself until all checks have ended.
        await page.getByText(/^Checked/).waitFor({ timeout: 90_000 });
        assert.ok((await page.locator(".finding").count()) > 10);
        if (process.env.SHOTS) await page.screenshot({ path: join(process.env.SHOTS, "console-doctor.png"), fullPage: true });
      }),
  },

  async "a link signs in once, and signing out ends the session"(w) {
    await open(w, {}, async ({ page, origin }) => {
      const link = w.program.operator("console").url;
      const other = await w.context.browser().newContext();
      const second = await other.newPage();
      await second.goto(link);
      await second.getByRole("button", { name: "Sign in" }).click();
      await second.waitForURL("**/console");
      await other.clearCookies();
      await second.goto(link);
      await second.getByRole("button", { name: "Sign in" }).click();
      await second.getByText("This link has already been used").waitFor();
      if (process.env.SHOTS) await second.screenshot({ path: join(process.env.SHOTS, "console-used-link.png") });
      await other.close();
      await page.getByRole("button", { name: "Sign out" }).click();
      await page.waitForURL("**/console/sign-in?done=signed_out");
      await page.goto(origin + "/console/queue");
      assert.match(page.url(), /\/console\/sign-in$/);
    });
  },

  async "other hosts are refused"(w) {
    const { origin } = new URL(w.program.operator("console").url);
    assert.equal(await statusFor(origin, "evil.example", "/console/sign-in"), 421);
    assert.equal(await statusFor(origin, "localhost", "/console/sign-in"), 200);
    assert.equal(await statusFor(origin, "evil.example", "/metrics"), 200);
  },
};
