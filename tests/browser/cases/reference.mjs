// The API reference and the guides of the real server: every page at two widths, in both colour schemes, with and without the script.
import assert from "node:assert/strict";
import { auditor } from "../audit.mjs";

const BROWSER_MS = 600_000;

/** A page of its own context that collects what went wrong: messages of the console, errors, foreign requests. */
async function open(w, options, visit) {
  const { withoutScript, ...settings } = options;
  const context = await w.context.browser().newContext(settings);
  const wrong = [];
  context.on("console", (message) => wrong.push(`${message.type()}: ${message.text()}`));
  context.on("weberror", (error) => wrong.push(error.error().message));
  context.on("request", (request) => {
    if (!/^data:/.test(request.url()) && new URL(request.url()).origin !== w.program.url) wrong.push(request.url());
  });
  await context.addInitScript(() => {
    document.addEventListener("securitypolicyviolation", (event) => console.error(`policy: ${event.violatedDirective}`));
    // On a busy machine a page is drawn before its end has arrived, which moves a line by a pixel or two.
    new PerformanceObserver((list) => {
      const shifts = list.getEntries().filter((shift) => !shift.hadRecentInput && shift.value >= 0.01);
      for (const shift of shifts) console.error(`layout shift ${shift.value}`);
    }).observe({ type: "layout-shift", buffered: true });
  });
  try {
    await visit(await context.newPage());
    assert.deepEqual(wrong, []);
  } finally {
    await context.close();
  }
}

/** Paths of all pages, from the list for language models. */
async function paths(w) {
  const list = await (await fetch(w.program.url + "/llms.txt")).text();
  const found = [...list.matchAll(/\]\((\S+)\.md\)/g)].map(([, url]) => new URL(url).pathname.replace(/\/index$/, ""));
  assert.ok(found.length > 20, list);
  return found;
}

/** Opens each page, and passes it on. */
async function openEach(w, options, check = () => {}) {
  await open(w, options, async (page) => {
    // An empty script in place of the page's own.
    if (options.withoutScript) await page.route("**/docs/assets/*.js", (route) => route.fulfill({ body: "" }));
    for (const path of await paths(w)) {
      const response = await page.goto(w.program.url + path);
      assert.equal(response.status(), 200, path);
      const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(overflow <= 0, `${path} is ${overflow} px wider than the window`);
      await check(page, path, response);
    }
  });
}

/** Axe needs JavaScript, so it sees a page without the script; another case switches JavaScript off. */
const everyPage = (width, colorScheme, withoutScript = false) => ({
  milliseconds: BROWSER_MS,
  async run(w) {
    const audit = auditor(w, width, false);
    const options = { viewport: { width, height: 900 }, colorScheme, withoutScript };
    await openEach(w, options, async (page, path, response) => assert.deepEqual(await audit(page, response), [], path));
  },
});

const shown = (page, language) => page.locator(`.x-${language}`).first().isVisible();

export const withServer = {
  "every page, 1280 px, light": everyPage(1280, "light"),
  "every page, 320 px, dark, without the script": everyPage(320, "dark", true),

  "every page without JavaScript": {
    milliseconds: BROWSER_MS,
    async run(w) {
      for (const width of [320, 1280]) await openEach(w, { viewport: { width, height: 900 }, javaScriptEnabled: false });
    },
  },

  async "a language is chosen without JavaScript"(w) {
    await open(w, { javaScriptEnabled: false }, async (page) => {
      await page.goto(w.program.url + "/docs/emails");
      assert.deepEqual([await shown(page, "curl"), await shown(page, "python")], [true, false]);
      await page.getByText("Python", { exact: true }).click();
      assert.deepEqual([await shown(page, "curl"), await shown(page, "python")], [false, true]);
      await page.keyboard.press("ArrowRight");
      assert.equal(await shown(page, "php"), true);
    });
  },

  async "the menu opens without JavaScript on a narrow screen"(w) {
    await open(w, { javaScriptEnabled: false, viewport: { width: 320, height: 700 } }, async (page) => {
      await page.goto(w.program.url + "/docs");
      const link = page.getByRole("link", { name: "Templates", exact: true });
      assert.equal(await link.isVisible(), false);
      await page.getByText("Menu", { exact: true }).click();
      await link.click();
      await page.waitForURL("**/docs/templates");
    });
  },

  async "the language is remembered, and code is copied"(w) {
    await open(w, { permissions: ["clipboard-read", "clipboard-write"] }, async (page) => {
      await page.goto(w.program.url + "/docs");
      await page.getByText("Node", { exact: true }).click();
      await page.goto(w.program.url + "/docs/emails#get-email");
      assert.equal(await shown(page, "node"), true);
      await page.locator("#get-email .x-node").getByRole("button", { name: /^Copy/ }).click();
      await page.getByRole("button", { name: /^Copied/ }).waitFor();
      const copied = await page.evaluate(() => navigator.clipboard.readText());
      assert.match(copied, /^const \{ data, error \} = await client\.emails\.get\("EMAIL_ID"\);/);
    });
  },

  async "operations are filtered"(w) {
    await open(w, {}, async (page) => {
      await page.goto(w.program.url + "/docs/operations");
      await page.getByRole("searchbox", { name: "Filter operations" }).pressSequentially("post /emails/batch");
      assert.equal(await page.locator("tbody tr:visible").count(), 1);
      await page.locator("tbody tr:visible a").click();
      await page.waitForURL("**/docs/emails#send-batch");
    });
  },

  async "guides are searched without JavaScript"(w) {
    await open(w, { javaScriptEnabled: false }, async (page) => {
      await page.goto(w.program.url + "/docs/guides");
      const field = page.getByRole("searchbox", { name: "Search guides and API reference" });
      await field.fill("restore <b> backup");
      await field.press("Enter");
      await page.getByText("No section contains all of these words").waitFor();
      assert.equal(await field.inputValue(), "restore <b> backup");
      await field.fill("Restore backup");
      await field.press("Enter");
      await page.getByRole("link", { name: "Back up and restore: Restore", exact: true }).click();
      await page.waitForURL("**/docs/guides/backup#restore");
    });
  },

  async "an error leads to its entry"(w) {
    const answer = await fetch(w.program.url + "/emails");
    const { error } = await answer.json();
    await open(w, {}, async (page) => {
      await page.goto(error.doc_url);
      assert.equal(await page.locator(":target h2").textContent().then((text) => text.includes(error.code)), true);
    });
  },

  async "documents are compressed, compared and kept"(w) {
    const url = w.program.url + "/docs";
    const first = await fetch(url);
    assert.equal(first.headers.get("content-encoding"), "gzip");
    const again = await fetch(url, { headers: { "if-none-match": first.headers.get("etag") } });
    assert.equal(again.status, 304);
    const style = (await first.text()).match(/href="(\/docs\/assets\/style[^"]+)"/)[1];
    assert.match((await fetch(w.program.url + style)).headers.get("cache-control"), /immutable/);
    assert.equal((await fetch(w.program.url + "/docs/nothing")).status, 404);
  },
};
