// The pages for people without an account: the partner portal, the pages behind links in emails, and the sign-in. Each
// page of the real server in both colour schemes and at two widths, with hostile strings in every field that strangers
// fill. These pages have no scripts.
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { axe, validator, violations } from "../audit.mjs";

const BROWSER_MS = 300_000;
const HOSTILE = `"><script>alert(1)</script><img src=x onerror=alert(2)> \u202Efdp.exe {{7*7}}`;
const PASSWORD = "correct horse battery";
const VIEWS = [1280, 320].flatMap((width) => ["light", "dark"].map((colorScheme) => ({ width, colorScheme })));

/** Checks the page that is shown, in every view. `name` is that of its pictures in the directory SHOTS. */
class Inspector {
  constructor(w) {
    this.axe = axe(w.modules);
    this.validator = validator(w.modules);
    this.problems = [];
    this.count = 0;
  }

  async look(page, name, title) {
    this.count += 1;
    const wrong = (text) => this.problems.push(`${name}: ${text}`);
    assert.equal(await page.locator("h1").textContent(), title, name);
    const html = await this.response.text();
    const report = await this.validator.validateString(html);
    for (const { messages } of report.results) messages.forEach(({ ruleId, message }) => wrong(`${ruleId}: ${message}`));
    const policy = this.response.headers()["content-security-policy"] ?? "";
    if (!/^default-src 'none'; style-src '(self|sha256-[^']+)'; /.test(policy) || /script-src|unsafe/.test(policy)) wrong(policy);
    if (/<script|\u202E(?!;)/.test(html)) wrong("a script or a direction override");
    for (const { width, colorScheme } of VIEWS) {
      await page.setViewportSize({ width, height: 900 });
      await page.emulateMedia({ colorScheme });
      const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      if (overflow > 0) wrong(`${overflow} px wider than ${width} px`);
      for (const violation of await violations(page, this.axe)) wrong(`${width} ${colorScheme} ${violation}`);
      if (process.env.SHOTS) {
        const directory = join(process.env.SHOTS, `${width}-${colorScheme}`);
        mkdirSync(directory, { recursive: true });
        await page.screenshot({ path: join(directory, `${name}.png`), fullPage: true });
      }
    }
    await page.setViewportSize({ width: 1280, height: 900 });
  }
}

/** Opens a context that collects what went wrong. */
async function inspect(w, visit) {
  const inspector = new Inspector(w);
  const context = await w.context.browser().newContext();
  context.setDefaultTimeout(10_000);
  const refused = /status of (400|401|403|404|409|410)/;
  context.on("console", (message) => refused.test(message.text()) || inspector.problems.push(`${message.type()}: ${message.text()}`));
  context.on("dialog", (dialog) => inspector.problems.push(dialog.message()) && dialog.dismiss());
  context.on("request", (request) => {
    if (new URL(request.url()).origin !== w.program.url) inspector.problems.push(request.url());
  });
  const page = await context.newPage();
  page.on("response", (response) => {
    if (/^text\/html/.test(response.headers()["content-type"] ?? "")) inspector.response = response;
  });
  const look = (name, title) => inspector.look(page, name, title);
  const open = async (path, name, title) => {
    await page.goto(w.program.url + path);
    await look(name, title);
  };
  const press = async (label, name, title) => {
    await Promise.all([page.waitForEvent("load"), page.getByRole("button", { name: label, exact: true }).click()]);
    if (name) await look(name, title);
  };
  try {
    await visit({ page, look, open, press });
    assert.deepEqual(inspector.problems, []);
    console.log(`      ${inspector.count} pages`);
  } finally {
    await context.close();
  }
}

/** The path of the unsubscribe link of the email to an address (RFC 2369). */
async function unsubscribePath(w, to) {
  const answer = await fetch(`${w.program.url}/messages?to=${encodeURIComponent(to)}&wait=10s`);
  const [{ id }] = (await answer.json()).messages;
  const raw = await (await fetch(`${w.program.url}/inbox/messages/${id}/raw`)).text();
  const [, link] = /^List-Unsubscribe:[^<]*<(http[^>]+)>/im.exec(raw.replace(/\r\n[ \t]/g, ""));
  return new URL(link).pathname;
}

/** The path of a link in the newest email to an address whose subject has these words. */
async function mailedPath(w, to, subject, pattern) {
  const query = new URLSearchParams({ to, subject, wait: "10s" });
  const { links } = await (await fetch(`${w.program.url}/latest/links?${query}`)).json();
  const link = links.map((link) => link.url ?? link).find((link) => pattern.test(link));
  assert.ok(link, `${to}: ${JSON.stringify(links)}`);
  return new URL(link).pathname;
}

/** Opens the portal as a partner. */
async function enter(w, page, partner) {
  const { url } = await w.program.api("POST", `/affiliates/${partner.id}/login-link`, {});
  await page.goto(url);
}

let filled;
/** Partners in every state. Grace has links, referrals, commissions and payouts. */
function fill(w) {
  filled ??= (async () => {
    const { api, admin, pay } = w.program;
    admin("set", "terms_url=https://shop.example/terms?a=1&b=2", "min_payout=" + JSON.stringify({ usd: 500 }));
    const add = (fields) => api("POST", "/affiliates", { send_invite: false, ...fields }).then(({ affiliate }) => affiliate);
    const grace = await add({ email: "grace@partners.example", first_name: "Grace", last_name: HOSTILE.slice(0, 90), company: HOSTILE, token: "grace" });
    const others = {};
    for (const status of ["pending", "invited", "active"]) {
      others[status] = await add({ email: `${status}@partners.example`, first_name: status, status });
    }
    await api("POST", `/affiliates/${grace.id}/links`, { token: "newsletter", label: HOSTILE, destination_url: "/pricing" });
    admin("partner", "payout-method", grace.id, "bank", "DE02 1203 0000 0000 2020 51\nGrace Hopper");
    const seconds = () => Math.floor(Date.now() / 1000);
    const paid = async (n, cents) => {
      await api("POST", "/affiliate-referrals", { token: "grace", email: `customer${n}@customers.example`, sub_id: n % 2 ? HOSTILE : "june", processor_customer_id: `cus_portal_${n}` });
      await pay("invoice.paid", {
        id: `in_portal_${n}`, object: "invoice", customer: `cus_portal_${n}`, currency: "usd", status: "paid",
        total: cents, total_excluding_tax: cents, amount_paid: cents, status_transitions: { paid_at: seconds() },
      });
    };
    for (const [n, cents] of [[1, 4_900], [2, 1_234_500], [3, 9_900]]) await paid(n, cents);
    const { run } = admin("run", "draft");
    admin("run", "approve", run.id, "--rev", String(run.rev), "--total", `usd=${run.totals.usd}`);
    const { data } = await api("GET", "/affiliate-payouts?status=processing");
    const payout = data.find(({ affiliate_id }) => affiliate_id === grace.id);
    await api("POST", `/affiliate-payouts/${payout.id}/mark-paid`, { reference: HOSTILE });
    await paid(4, 4_900);
    await api("POST", "/affiliate-referrals", { token: "grace", email: "lead@customers.example" });
    return { grace, payout, ...others };
  })();
  return filled;
}

/** The code of a secret in base32 (RFC 6238). */
function oneTimePassword(secret) {
  const bits = [...secret].map((letter) => "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".indexOf(letter).toString(2).padStart(5, "0")).join("");
  const key = Buffer.from(bits.match(/.{8}/g).map((byte) => parseInt(byte, 2)));
  const counter = Buffer.alloc(8);
  counter.writeBigUInt64BE(BigInt(Math.floor(Date.now() / 30_000)));
  const tag = createHmac("sha1", key).update(counter).digest();
  return String((tag.readUInt32BE(tag[19] & 15) & 0x7fffffff) % 1_000_000).padStart(6, "0");
}

export const withServer = {
  "the pages of a partner": {
    milliseconds: BROWSER_MS,
    run: (w) =>
      inspect(w, async ({ page, look, open, press }) => {
        const { grace, payout } = await fill(w);
        await enter(w, page, grace);
        const title = `Hello, Grace ${HOSTILE.slice(0, 90).replace("\u202E", "\uFFFD")}`;
        await look("home", title);
        for (const name of ["Links", "Referrals", "Earnings", "Payouts", "Settings"]) await open(`/portal/${name.toLowerCase()}`, name.toLowerCase(), name);
        await open(`/portal/payouts/${payout.id}`, "receipt", "Payout");
        await open("/portal/payouts/pay_x", "no-receipt", "Page not found");
        await open("/portal/links?done=link-added", "link-added", "Links");
        await page.locator("summary", { hasText: "Add a link" }).click();
        await page.locator("#new-token").fill("newsletter");
        await page.locator("#new-label").fill(HOSTILE);
        await press("Add the link", "link-refused", "Links");
        assert.equal(await page.locator("#new-label").inputValue(), HOSTILE, "what was typed comes back unchanged");
        await open("/portal/settings", "settings", "Settings");
        await page.locator("#postback_url").fill(`${w.program.url}/nothing`);
        await page.locator("form[action=postback] button").click();
        await page.locator("code.secret").waitFor();
        await look("secret", "Settings");
        await press("Send a test", "postback-log", "Settings");
        await page.locator("#payout summary").click();
        await page.locator("#destination").fill("DE02 1203 0000 0000 2020 51\nGrace Hopper");
        await page.locator("#method").selectOption("bank");
        await press("Change payout details", "payout-asked", "Settings");
        await open(await mailedPath(w, "grace@partners.example", "confirm", /\/portal\/payout\//), "payout-confirm", "Change payout details?");
        await press("Confirm", "payout-changed", "Payout details changed");
        await open("/portal/home", "home", title);
        await press("Sign out", "sign-in", "Partner portal of shop.localhost");
        await open("/portal/home", "signed-out", "You are signed out");
      }),
  },

  "partners without referrals, with an application and with an invitation": {
    milliseconds: BROWSER_MS,
    run: (w) =>
      inspect(w, async ({ page, look, open, press }) => {
        const { active, pending, invited } = await fill(w);
        await enter(w, page, active);
        await look("empty-home", "Hello, active");
        for (const name of ["Links", "Referrals", "Earnings", "Payouts", "Settings"]) await open(`/portal/${name.toLowerCase()}`, `empty-${name.toLowerCase()}`, name);
        await enter(w, page, pending);
        await look("pending-home", "Hello, pending");
        await open("/portal/settings", "pending-settings", "Settings");
        await enter(w, page, invited);
        await look("invited-home", "Hello, invited");
        await page.locator("#terms").check();
        await press("Accept the invitation", "accepted", "Hello, invited");
      }),
  },

  "joining and signing in to the portal": {
    milliseconds: BROWSER_MS,
    run: (w) =>
      inspect(w, async ({ page, open, press }) => {
        await fill(w);
        const { key } = w.program;
        await open(`/portal/join?key=${key}&via=${encodeURIComponent(HOSTILE)}`, "join", "Become a partner of shop.localhost");
        await page.locator("#email").fill("new@partners.example");
        await page.locator("#first_name").fill(HOSTILE);
        await page.locator("#website").fill("javascript:alert(1)");
        await page.locator("#terms").check();
        await press("Join", "join-refused", "Become a partner of shop.localhost");
        assert.equal(await page.locator("#first_name").inputValue(), HOSTILE);
        await page.locator("#website").fill("");
        await page.locator("#terms").check();
        await press("Join", "joined", "Check your email");
        await open("/portal/sign-in", "no-program", "Program not found");
        await open(`/portal/sign-in?key=${key}`, "sign-in", "Partner portal of shop.localhost");
        await page.locator("#email").fill("grace@partners.example");
        await press("Send me a link", "link-sent", "Check your email");
        await open(await mailedPath(w, "grace@partners.example", "sign in", /\/portal\/link\//), "portal-link", "Sign in");
        await press("Continue");
        await page.waitForURL("**/portal/home");
        await open("/portal/enter/x", "portal-expired", "This link has expired");
      }),
  },

  "unsubscribing, preferences and invalid links": {
    milliseconds: BROWSER_MS,
    run: (w) =>
      inspect(w, async ({ page, open, press }) => {
        const to = `reader-${Date.now()}@example.net`;
        await w.program.api("POST", "/emails", {
          from: `${JSON.stringify(HOSTILE.replace(/[^ -~]/g, ""))} <ada@example.com>`,
          to: [to], subject: "News", text: "News", category: "newsletter", unsubscribe: true,
        });
        const path = await unsubscribePath(w, to);
        await open(path, "unsubscribe", "Unsubscribe?");
        await open(`${path}/preferences`, "preferences", "Email preferences");
        await page.getByLabel(/Do not send me any email/).check();
        await press("Save", "preferences-saved", "Email preferences");
        await page.getByLabel(/Do not send me any email/).uncheck();
        await press("Save");
        await open(path, "unsubscribe", "Unsubscribe?");
        await press("Unsubscribe", "unsubscribed", "You have been unsubscribed");
        await open("/u/x", "unsubscribe-invalid", "This link does not work");
        await open("/c/x", "click-invalid", "Invalid link");
        await open("/r/nobody", "partner-link-invalid", "No such link");
      }),
  },

  "the sign-in to the dashboard": {
    milliseconds: BROWSER_MS,
    run: (w) =>
      inspect(w, async ({ page, look, open, press }) => {
        await open("/auth/link/x", "login-link", "Sign in");
        await press("Sign in", "login-expired", "Sign in again");
        await open("/auth/code/x", "login-code", "One-time password");
        const session = w.program.session();
        const post = async (path, body) => {
          const headers = { "cookie": session.cookie, "x-csrf-token": session.csrf_token, "content-type": "application/json" };
          const answer = await fetch(w.program.url + path, { method: "POST", headers, body: JSON.stringify(body) });
          assert.ok(answer.ok, `${path}: ${answer.status}`);
          return answer.json();
        };
        await post("/auth/password", { password: PASSWORD });
        const { secret } = await post("/auth/totp", {});
        const { recovery_codes } = await post("/auth/totp/confirm", { code: oneTimePassword(secret) });
        try {
          const { challenge } = await post("/auth/sign-in", { email: "dev@example.com", password: PASSWORD });
          await page.goto(`${w.program.url}/auth/code/${challenge}`);
          await page.getByLabel(/authenticator app/).fill("000000");
          await press("Sign in");
          await look("login-wrong-code", "One-time password");
          await page.getByLabel(/authenticator app/).fill(recovery_codes[0]);
          await page.getByRole("button", { name: "Sign in" }).click();
          await page.waitForURL("**/dashboard");
        } finally {
          await post("/auth/totp/disable", { code: recovery_codes[1] });
        }
      }),
  },
};
