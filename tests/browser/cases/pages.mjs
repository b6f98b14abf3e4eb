// Kinds of pages: repeated tags, routers, several tabs, prerendering, pages without an origin.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const NOBODY = { referral: "", affiliate: null };

export const anywhere = {
  async "the tag may occur twice and be inserted again"(w) {
    const page = await w.visit(w.linked(w.page(w.stub + w.tag() + w.stub + w.tag())));
    const known = await w.known(page);
    await page.evaluate(
      () =>
        new Promise((done) => {
          window.was = stx;
          const tag = document.querySelector("script[data-key]"),
            again = document.createElement("script");
          for (const { name, value } of tag.attributes) again.setAttribute(name, value);
          again.onload = done;
          document.head.append(again);
        }),
    );
    assert.equal(await page.evaluate(() => window.was === stx), true);
    assert.deepEqual(await w.known(page), known);
    assert.equal(w.told("visits").length, 1);
  },

  async "a router that changes the address first"(w) {
    const router = "<script>history.replaceState(null, '', '/home?tab=1');</script>";
    const page = await w.visit(`${w.page(router + w.stub + w.tag())}?via=${w.program.tokens[0]}&sub_id=june`);
    assert.match((await w.known(page)).referral, /^vis_/);
    assert.equal(new URL(page.url()).pathname, "/home");
    const [{ url, sub_id }] = w.told("visits");
    assert.deepEqual([new URL(url).pathname, sub_id], ["/page-1", "june"]);
  },

  async "navigation within a single-page app is no visit"(w) {
    const page = await w.visit(w.linked(w.page()));
    const known = await w.known(page);
    await page.evaluate((token) => history.pushState(null, "", "/next?via=" + token), w.program.tokens[1]);
    assert.deepEqual(await w.known(page), known);
    assert.equal(w.told("visits").length, 1);
  },

  async "tabs share their state"(w) {
    const path = w.page();
    const first = await w.visit(path);
    assert.deepEqual(await w.known(first), NOBODY);
    const second = await w.visit(w.linked(path));
    const known = await w.known(second);
    // The tabs share cookies. A browser may show a cookie to another tab later than to the tab that sets it.
    await first.waitForFunction((referral) => stx.referral === referral, known.referral);
    assert.deepEqual(await first.evaluate(() => ({ referral: stx.referral, affiliate: stx.affiliate })), known);
    await first.evaluate(() => stx.consent(false));
    await second.waitForFunction(() => stx.referral === "");
  },

  async "a prerendered page waits until it is shown"(w) {
    const before = (page) =>
      page.addInitScript(() => {
        window.inAdvance = true;
        Object.defineProperty(Document.prototype, "prerendering", { get: () => window.inAdvance });
      });
    const page = await w.visit(w.linked(w.page()), { before });
    await page.evaluate(
      () => (window.asked = new Promise((done) => stx.ready((given) => done(given.referral)))) && 0,
    );
    assert.equal(w.requestsTo("visits").length, 0);
    await page.evaluate(() => {
      window.inAdvance = false;
      document.dispatchEvent(new Event("prerenderingchange"));
    });
    assert.match(await page.evaluate(() => window.asked), /^vis_/);
  },

  async "a tag inserted by a tag manager, or a module"(w) {
    const src = w.program.url + "/stx.js",
      { key } = w.program;
    const managed = `<script>(function () {
      var tag = document.createElement("script");
      tag.src = "${src}"; tag.setAttribute("data-key", "${key}");
      document.head.appendChild(tag);
    })();</script>`;
    // A module has no \`currentScript\` and is fetched with CORS, so the page loads it from its own host.
    const module = `<script type="module" src="/px/stx.js" data-key="${key}"></script>`;
    for (const tag of [managed, module]) {
      await w.context.clearCookies();
      const page = await w.visit(w.linked(w.page(w.stub + tag)));
      assert.match((await w.known(page)).referral, /^vis_/);
    }
  },

  async "a tag without a key does nothing"(w) {
    const page = await w.visit(
      `${w.page(w.stub + `<script async src="${w.program.url}/stx.js"></script>`)}?via=${w.program.tokens[0]}`,
    );
    await page.evaluate(() => (stx.consent(true), stx.referralSignup("grace@example.net")));
    assert.deepEqual([await w.known(page), w.requestsTo("visits").length], [NOBODY, 0]);
  },

  async "a page of a local file sends nothing"(w) {
    const room = mkdtempSync(join(tmpdir(), "page-"));
    try {
      writeFileSync(join(room, "page.html"), `<!doctype html>${w.stub}${w.tag()}`);
      const page = await w.visit(w.linked(pathToFileURL(join(room, "page.html"))));
      await page.evaluate(() => (stx.consent(true), stx.consent(false), stx.referralSignup("grace@example.net")));
      assert.deepEqual(await w.known(page), NOBODY);
    } finally {
      rmSync(room, { recursive: true });
    }
    assert.deepEqual(
      w.requests.filter((request) => request.method() == "POST"),
      [],
    );
  },

  async "a sandboxed frame without an origin throws nothing"(w) {
    const inner = w.page();
    const sandboxed = `<iframe sandbox="allow-scripts" src="${inner}?via=${w.program.tokens[0]}"></iframe>`;
    const page = await w.visit(w.page("", sandboxed));
    const frame = page.frames()[1];
    await frame.evaluate(() => (stx.consent(true), stx.consent(false)));
    assert.deepEqual(await w.known(frame), NOBODY);
    assert.deepEqual(
      w.requests.filter((request) => request.method() == "POST"),
      [],
    );
  },

  async "a frame of another site knows its visit and stores nothing"(w) {
    const inner = w.page();
    const page = await w.visit(
      w.page("", `<iframe src="${w.shop.at("other.localhost", inner)}?via=${w.program.tokens[0]}"></iframe>`),
    );
    assert.match((await w.known(page.frames()[1])).referral, /^vis_/);
    assert.deepEqual(await w.cookies("other.localhost"), {});
  },
};
