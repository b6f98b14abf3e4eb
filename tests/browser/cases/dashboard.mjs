// The dashboard of the real server: every page that links lead to, at two widths, in both colour schemes, with and
// without JavaScript.
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { join } from "node:path";
import { auditor } from "../audit.mjs";

const BROWSER_MS = 900_000;
/** Pages of one kind that are opened; an email's page depends on its state, that of a template on its format. */
const eachMax = (kind) => ({ "/dashboard/emails/{id}": 4, "/dashboard/templates/{id}": 2 })[kind] ?? 1;
const PAGES_MAX = 220;
export const HOSTILE = `"><script>alert(1)</script><img src=x onerror=alert(2)> \u202Efdp.exe {{7*7}}`;

let filled;
/** Fills the account once: at least an entry in every list, with hostile strings in the fields that strangers fill. */
function fill(w) {
  filled ??= (async () => {
    const { api } = w.program;
    const send = (fields) => api("POST", "/emails", { from: `Ada <ada@example.com>`, text: "Hello", ...fields });
    for (let n = 0; n < 3; n += 1) await send({ to: [`person${n}@example.net`], subject: `Letter ${n}`, html: "<h1>Hello</h1>" });
    await send({ to: ["stranger@example.net"], from: `${JSON.stringify(HOSTILE.replace(/[^ -~]/g, ""))} <ada@example.com>`, subject: HOSTILE, html: HOSTILE });
    await send({ to: ["bounced@simulator.postrider.test"], subject: "Will bounce" });
    await send({ to: ["later@example.net"], subject: "Scheduled", scheduled_at: new Date(Date.now() + 864e5).toISOString() });
    await api("POST", "/domains", { name: "unverified.example" }).catch(() => {});
    await api("POST", "/templates", { name: HOSTILE.slice(0, 90), alias: "welcome", from: "ada@example.com", subject: "Hi {{name}}", html: "<p>Hi {{name}}</p>" });
    const mjml = "<mjml><mj-body><mj-section><mj-column><mj-text>Hi {{name}}</mj-text></mj-column></mj-section></mj-body></mjml>";
    await api("POST", "/templates", { name: "In MJML", subject: "Hi {{name}}", mjml });
    await api("POST", "/webhooks", { url: `${w.program.url}/nothing`, events: ["email.delivered"] });
    await api("POST", "/suppressions", { email: "blocked@example.net", note: HOSTILE });
    await api("POST", "/api-keys", { name: HOSTILE.slice(0, 60), scope: "sending" });
    await api("POST", "/events", { name: "user.created", user_id: HOSTILE.slice(0, 60), email: "grace@example.net", data: { plan: HOSTILE } });
    await api("POST", "/automations", { name: HOSTILE.slice(0, 60), trigger: { event: "user.created" }, steps: [{ type: "delay", duration: "3d" }] });
  })();
  return filled;
}

/** A context that is signed in, and collects what went wrong: messages of the console, errors, foreign requests. */
export async function open(w, options, visit) {
  await fill(w);
  const { withoutScript, ...settings } = options;
  const context = await w.context.browser().newContext(settings);
  const wrong = [];
  // The frame of an email blocks its scripts and pictures, and says so.
  const isBlockedMail = (message) => /\/html$/.test(message.location().url) && /sandboxed|img-src data:/.test(message.text());
  context.on("console", (message) => isBlockedMail(message) || wrong.push(`${message.type()}: ${message.text()} ${message.location().url}`));
  context.on("dialog", (dialog) => wrong.push(`dialog ${dialog.message()}`) && dialog.dismiss());
  context.on("weberror", (error) => wrong.push(error.error().message));
  context.on("request", (request) => {
    if (!/^data:/.test(request.url()) && new URL(request.url()).origin !== w.program.url) wrong.push(request.url());
  });
  await context.addInitScript(() => {
    document.addEventListener("securitypolicyviolation", (event) => console.error(`policy: ${event.violatedDirective} ${event.blockedURI}`));
  });
  const page = await context.newPage();
  try {
    if (withoutScript) await page.route("**/dashboard/assets/*.js", (route) => route.fulfill({ body: "" }));
    await page.goto(w.program.session().url);
    await page.getByRole("button").click();
    await page.waitForURL("**/dashboard");
    await visit(page, wrong);
    assert.deepEqual(wrong, []);
  } finally {
    await context.close();
  }
}

/** A picture of each page in the directory SHOTS, for people to look at. */
const shotPath = (path, { viewport, colorScheme = "none" }) =>
  join(process.env.SHOTS, `${viewport.width}-${colorScheme}`, kind(path).replaceAll("/", "_") + ".png");

/** The kind of a path: ids and names are left out. */
const kind = (path) => path.replace(/\/[a-z]+_[0-9A-Z]{20,}/g, "/{id}").replace(/\?.*/, "");

/** The innermost element that reaches beyond the window, for the message. */
function widest() {
  const isBeyond = (element) => element.getBoundingClientRect().right > innerWidth + 1;
  const isScrolled = (element) => element.closest("pre, .scroll, table") !== null;
  const all = [...document.querySelectorAll("main *")].filter((element) => isBeyond(element) && !isScrolled(element));
  return all.at(-1)?.outerHTML.slice(0, 200);
}

/** Follows all links from the start page, opens pages of each kind, and passes each on. */
async function openEach(w, options, check = () => {}) {
  await open(w, options, async (page, wrong) => {
    const [waiting, seen, kinds] = [["/dashboard"], new Set(["/dashboard"]), new Map()];
    for (let path; (path = waiting.shift()) && seen.size < PAGES_MAX; ) {
      const response = await page.goto(w.program.url + path).catch((error) => {
        if (!/Download is starting/.test(error.message)) throw error;
      });
      if (!response) continue;
      const problems = (await check(page, path, response)) ?? [];
      const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      if (overflow > 0) problems.push(`${overflow} px wider than the window: ${await page.evaluate(widest)}`);
      if (response.status() !== 200) problems.push(`status ${response.status()}`);
      if (problems.length) wrong.push(`${path}: ${problems.join("\n")}`);
      if (process.env.SHOTS) await page.screenshot({ path: shotPath(path, options), fullPage: true });
      const links = await page.locator("a[href]:not([download])").evaluateAll((all) => all.map((link) => link.href));
      for (const link of links) {
        const url = new URL(link);
        const next = url.pathname + url.search;
        const number = kinds.get(kind(next)) ?? 0;
        const isPage = url.origin === w.program.url && /^\/dashboard(\/|$)/.test(url.pathname);
        if (!isPage || seen.has(next) || number >= eachMax(kind(next)) || /\/(raw|csv|export|download|html|preview)\b/.test(next)) continue;
        kinds.set(kind(next), number + 1);
        seen.add(next);
        waiting.push(next);
      }
    }
    assert.ok(seen.size >= (w.program.pages ?? 2), `only ${seen.size} pages`);
    console.log(`      ${seen.size} pages of ${kinds.size} kinds`);
  });
}

/** Axe needs JavaScript, so it sees a page without the script; another case switches JavaScript off. */
const everyPage = (width, colorScheme, withoutScript = false) => ({
  milliseconds: BROWSER_MS,
  async run(w) {
    const audit = auditor(w, width, !withoutScript);
    await openEach(w, { viewport: { width, height: 900 }, colorScheme, withoutScript }, (page, path, response) => audit(page, response));
  },
});

/** The one-time password of a secret in base32 (RFC 6238). */
function oneTimePassword(secret) {
  const bits = [...secret.trim()].map((letter) => "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".indexOf(letter).toString(2).padStart(5, "0")).join("");
  const key = Buffer.from(bits.match(/.{8}/g).map((byte) => parseInt(byte, 2)));
  const time = Buffer.alloc(8);
  time.writeBigUInt64BE(BigInt(Math.floor(Date.now() / 30_000)));
  const tag = createHmac("sha1", key).update(time).digest();
  return String((tag.readUInt32BE(tag[19] & 15) & 0x7fffffff) % 1e6).padStart(6, "0");
}

const PASSWORD = "correct horse battery";

/** From the operator's link over password and one-time passwords to sign-in by a mailed link; then a colleague. */
const signIn = (javaScriptEnabled) => async (w) => {
  const context = await w.context.browser().newContext({ javaScriptEnabled });
  context.setDefaultTimeout(10_000);
  const page = await context.newPage();
  const press = (name) => page.getByRole("button", { name, exact: true }).click();
  const visit = (path) => page.goto(w.program.url + path);
  const owner = `owner-${javaScriptEnabled}@sign-in.example`;
  await page.goto(w.program.account(owner));
  await press("Sign in");
  await page.waitForURL("**/dashboard");
  await visit("/dashboard/security");
  await page.getByLabel("New password").fill("short");
  await press("Set the password");
  await page.getByText("shorter than 10 characters").waitFor();
  await page.getByLabel("New password").fill(PASSWORD);
  await press("Set the password");
  await page.getByText("The change was saved.").waitFor();
  await press("Set up");
  const secret = await page.locator(".secret code").textContent();
  await page.getByLabel("Code shown in the app").fill(oneTimePassword(secret));
  await press("Turn on");
  const codes = (await page.locator("main pre").textContent()).trim().split("\n");
  await visit("/dashboard/team");
  await page.getByLabel("Email address").fill("viewer-" + owner);
  await page.getByLabel(/^Viewer/).check();
  await press("Invite");
  await page.getByText("The invitation was sent.").waitFor();
  await context.clearCookies();

  await visit("/dashboard/domains?name=x");
  const byPassword = page.locator("form", { has: page.getByLabel("Password") });
  await byPassword.getByLabel("Email address").fill(owner);
  await byPassword.getByLabel("Password").fill("a wrong password");
  await press("Sign in");
  await page.getByRole("alert").waitFor();
  await byPassword.getByLabel("Password").fill(PASSWORD);
  await press("Sign in");
  await page.getByLabel("Code from your authenticator app").fill(codes[0]);
  await press("Sign in");
  await page.waitForURL("**/dashboard/domains?name=x");

  await visit("/dashboard/templates/new");
  await page.getByLabel("Name", { exact: true }).fill("Written before");
  await context.clearCookies();
  await press("Create and edit");
  await page.getByText("Your session has ended. Nothing was saved").waitFor();
  await byPassword.getByLabel("Email address").fill(owner);
  await byPassword.getByLabel("Password").fill(PASSWORD);
  await press("Sign in");
  await page.getByLabel("Code from your authenticator app").fill(codes[2]);
  await press("Sign in");
  await page.waitForURL("**/dashboard/templates/new");
  const name = await page.getByLabel("Name", { exact: true }).inputValue();
  assert.equal(name, javaScriptEnabled ? "Written before" : "");
  await context.clearCookies();

  await visit("/dashboard/metrics?range=7");
  await page.locator("form", { has: page.getByRole("button", { name: "Email me a link" }) }).getByLabel("Email address").fill(owner);
  await press("Email me a link");
  await page.getByText("a sign-in link is on its way").waitFor();
  await page.goto(await w.program.mailedLink(owner));
  await press("Sign in");
  await page.locator("input[name=code]").fill(codes[1]);
  await press("Sign in");
  await page.waitForURL("**/dashboard/metrics?range=7");
  await context.clearCookies();

  await page.goto(await w.program.mailedLink("viewer-" + owner));
  await press("Sign in");
  await page.waitForURL("**/dashboard");
  await visit("/dashboard/domains");
  assert.equal(await page.getByRole("link", { name: "Add a domain" }).count(), 0, "a viewer changes nothing");
  assert.equal((await visit("/dashboard/domains/new")).status(), 403);
  await context.close();
};

export const withServer = {
  "people sign in, and get to the page that they wanted": signIn(true),
  "people sign in without JavaScript": signIn(false),

  "every page, 1280 px, light": everyPage(1280, "light"),
  "every page, 320 px, dark, without the script": everyPage(320, "dark", true),

  "every page without JavaScript, 320 px": {
    milliseconds: BROWSER_MS,
    run: (w) => openEach(w, { viewport: { width: 320, height: 900 }, javaScriptEnabled: false }),
  },

  async "signed out, pages lead to the sign-in page"(w) {
    const context = await w.context.browser().newContext();
    const page = await context.newPage();
    await page.goto(w.program.url + "/dashboard/emails?status=bounced");
    assert.match(page.url(), /\/dashboard\/sign-in\?next=%2Fdashboard%2Femails%3Fstatus%3Dbounced$/);
    await context.close();
  },

  async "a list is filtered while typing, and the address keeps the filter"(w) {
    await open(w, {}, async (page) => {
      await page.goto(w.program.url + "/dashboard/emails");
      await page.getByLabel("Recipient").fill("person1@example.net");
      await page.waitForURL("**/dashboard/emails?*person1*");
      await page.locator("tbody tr").nth(1).waitFor({ state: "detached" });
      assert.match(await page.locator("tbody").textContent(), /person1@example\.net/);
    });
  },

  async "a new email appears without a reload"(w) {
    await open(w, {}, async (page) => {
      await page.goto(w.program.url + "/dashboard/emails");
      await w.program.api("POST", "/emails", { from: "ada@example.com", to: ["live@example.net"], subject: "Live row", text: "x" });
      await page.getByText("Live row").first().waitFor();
    });
  },

  async "leaving a page with text that was not sent asks first"(w) {
    const context = await w.context.browser().newContext();
    const page = await context.newPage();
    await page.goto(w.program.session().url);
    await page.getByRole("button").click();
    await page.waitForURL("**/dashboard");
    await page.goto(w.program.url + "/dashboard/emails/new");
    await page.getByLabel("Subject").pressSequentially("Not sent");
    const asked = page.waitForEvent("dialog");
    const left = page.getByRole("link", { name: "Metrics", exact: true }).click({ noWaitAfter: true });
    const dialog = await asked;
    assert.equal(dialog.type(), "beforeunload");
    await dialog.dismiss();
    await left;
    assert.equal(await page.getByLabel("Subject").inputValue(), "Not sent");
    await context.close();
  },

  async "a reload after a new secret creates no second one"(w) {
    await open(w, {}, async (page) => {
      await page.goto(w.program.url + "/dashboard/api-keys/new");
      await page.getByLabel("Name", { exact: true }).fill("Created once");
      await page.getByRole("button", { name: "Create API key" }).click();
      await page.locator(".secret code").waitFor();
      await page.waitForURL(/\/dashboard\/api-keys\/key_\w+$/);
      await page.reload();
      assert.equal(await page.locator(".secret code").count(), 0);
      await page.goto(w.program.url + "/dashboard/api-keys");
      assert.equal(await page.getByRole("link", { name: "Created once" }).count(), 1);
    });
  },

  async "the navigation shows the page, and the drawer closes"(w) {
    await open(w, { viewport: { width: 1280, height: 700 } }, async (page) => {
      await page.goto(w.program.url + "/dashboard/security");
      const current = page.locator(".sidebar [aria-current=page]");
      const shown = await current.evaluate((entry) => entry.getBoundingClientRect().bottom <= innerHeight);
      assert.ok(shown, "the entry of the page is below the edge");
      await page.setViewportSize({ width: 320, height: 700 });
      for (const close of [() => page.keyboard.press("Escape"), () => page.mouse.click(310, 500)]) {
        await page.locator("label.menu").click();
        await current.waitFor();
        await close();
        await current.waitFor({ state: "hidden" });
      }
    });
  },

  async "the palette leads to a page"(w) {
    await open(w, {}, async (page) => {
      await page.keyboard.press("Control+k");
      await page.keyboard.type("emails");
      await page.keyboard.press("Enter");
      await page.waitForURL("**/dashboard/emails");
      await page.keyboard.press("Control+k");
      await page.keyboard.type("no such page");
      await page.getByText("Nothing found").waitFor();
    });
  },
};
