// `stx.ready` always fires, in every form of use and after every failure; early calls are executed later.
import assert from "node:assert/strict";

const NOBODY = { referral: "", affiliate: null };
const WAIT_MS = 3000;

/** Waits for `ready` and advances the clock to its timeout. */
async function afterTheWait(w, page) {
  await page.evaluate(() => {
    window.asked = new Promise((done) => stx.ready(done)).then(() => ({
      referral: stx.referral,
      affiliate: stx.affiliate,
    }));
    window.awaited = (async () => (await stx.ready) === stx)();
  });
  await page.clock.fastForward(WAIT_MS);
  assert.equal(await page.evaluate(() => window.awaited), true);
  return page.evaluate(() => window.asked);
}

const withClock = { before: (page) => page.clock.install(), waitUntil: "domcontentloaded" };

export const anywhere = {
  async "it takes callbacks and can be awaited repeatedly"(w) {
    const page = await w.visit(w.linked(w.page()));
    const seen = await page.evaluate(async () => {
      const all = await Promise.all(
        [1, 2].flatMap(() => [new Promise((done) => stx.ready(done)), stx.ready, stx.ready()]),
      );
      const { referral } = await stx.ready;
      return { same: all.every((each) => each === stx), referral, then: typeof stx.then };
    });
    assert.equal(seen.same, true);
    assert.match(seen.referral, /^vis_/);
    assert.equal(seen.then, "undefined");
  },

  async "used before the script is loaded, it returns the script's result"(w) {
    const early = `<script>
      window.early = [];
      const kept = stx, { ready } = stx;
      stx.ready(function (given) { early.push(["callback", given === window.stx, given === kept, given.referral]); });
      stx.ready.then(function (given) { early.push(["then", given === window.stx, given === kept, given.referral]); });
      addEventListener("load", () => ready(function (given) { early.push(["late", true, given === kept, given.referral]); }));
    </script>`;
    const page = await w.visit(w.linked(w.page(w.stub + early + w.tag())));
    const { referral } = await w.known(page);
    await page.waitForFunction(() => window.early.length == 3);
    const found = await page.evaluate(() => window.early.sort());
    assert.deepEqual(
      found,
      ["callback", "late", "then"].map((how) => [how, true, true, referral]),
    );
  },

  async "without the stub it exists once the page is loaded"(w) {
    const page = await w.visit(w.linked(w.page(w.tag())));
    assert.match((await w.known(page)).referral, /^vis_/);
  },

  async "a callback that throws does not affect others"(w) {
    const page = await w.context.newPage();
    const thrown = w.context.waitForEvent("weberror");
    const odd = `<script>
      stx.ready(function () { throw new Error("the page's own"); });
      window.other = new Promise(function (done) { stx.ready(done); });
    </script>`;
    await w.visit(w.page(w.stub + odd + w.tag()), { page });
    assert.equal(await page.evaluate(async () => (await window.other) === stx), true);
    assert.equal((await thrown).error().message, "the page's own");
    assert.deepEqual(w.strange.splice(0), ["the page's own"]);
  },

  async "a script that is blocked"(w) {
    await w.context.route("**/stx.js", (route) => route.abort("blockedbyclient"));
    const page = await w.visit(w.linked(w.page()), { before: (page) => page.clock.install() });
    assert.deepEqual(await w.known(page), NOBODY);
    await page.evaluate(
      () => (
        stx.referralSignup("grace@example.net"),
        stx.identify({ email: "grace@example.net" }),
        stx.consent(true)
      ),
    );
    assert.deepEqual(
      await page.evaluate(() => new Promise((done) => stx.ready((given) => done(given.referral)))),
      "",
    );
  },

  async "a script that hangs and loads later"(w) {
    let release;
    const released = new Promise((done) => (release = done));
    await w.context.route("**/stx.js", async (route) => (await released, route.continue()));
    const page = await w.visit(w.linked(w.page()), withClock);
    await page.evaluate(() => stx.referralSignup("grace@example.net"));
    assert.deepEqual(await afterTheWait(w, page), NOBODY);
    const told = page.waitForRequest("**/affiliate/signups");
    release();
    assert.equal((await told).postDataJSON().email, "grace@example.net");
    assert.match((await w.known(page)).referral, /^vis_/);
  },

  async "an API that hangs"(w) {
    await w.answerVisits(null);
    const page = await w.visit(w.linked(w.page()), withClock);
    await page.waitForFunction(() => !stx.q);
    assert.deepEqual(await afterTheWait(w, page), NOBODY);
    assert.equal(w.requestsTo("visits").length, 1);
  },

  async "an API that cannot be reached"(w) {
    await w.context.route("**/affiliate/visits", (route) => route.abort("connectionrefused"));
    assert.deepEqual(await w.known(await w.visit(w.linked(w.page()))), NOBODY);
    assert.deepEqual(await w.cookies(), {});
  },

  async "an API that answers nonsense"(w) {
    const page = await w.visit();
    for (const [status, body] of [
      [500, "{}"],
      [429, ""],
      [200, ""],
      [200, "<html>"],
      [200, "null"],
      [200, "[]"],
      [200, "{}"],
    ]) {
      await w.context.unroute("**/affiliate/visits");
      await w.answerVisits(status, body);
      assert.deepEqual(await w.known(await w.visit(w.linked("/page-1"), { page })), NOBODY, `${status} ${body}`);
    }
    assert.deepEqual(await w.cookies(), {});
  },

  async "a known visit is kept if the request for a later link fails"(w) {
    const path = w.page();
    const known = await w.known(await w.visit(w.linked(path)));
    await w.context.route("**/affiliate/visits", (route) => route.abort("failed"));
    assert.deepEqual(await w.known(await w.visit(`${path}?via=${w.program.tokens[1]}`)), known);
  },
};
