// Consent banners: nothing is read, stored or sent before consent; a refusal deletes everything.
import assert from "node:assert/strict";

const NOBODY = { referral: "", affiliate: null };
const waiting = { "data-consent": "wait" };

/** Counts accesses of the page to its cookies. */
const watched = {
  before: (page) =>
    page.addInitScript(() => {
      const { get, set } = Object.getOwnPropertyDescriptor(Document.prototype, "cookie");
      window.looked = 0;
      Object.defineProperty(Document.prototype, "cookie", {
        get() {
          window.looked += 1;
          return get.call(this);
        },
        set(value) {
          window.looked += 1;
          set.call(this, value);
        },
      });
    }),
};

export const anywhere = {
  async "nothing happens before consent, and everything after it"(w) {
    const path = w.page(w.stub + w.tag(waiting), w.example("Consent"));
    const page = await w.visit(w.linked(path), watched);
    await page.evaluate(() => {
      stx.referralSignup("grace@example.net");
      window.asked = new Promise((done) => stx.ready((given) => done(given.referral)));
      // Navigation of a single-page app in the meantime.
      history.pushState(null, "", "/elsewhere");
    });
    assert.deepEqual(await page.evaluate(() => [stx.referral, stx.affiliate, window.looked]), ["", null, 0]);
    assert.deepEqual([w.requestsTo("visits").length, await w.cookies()], [0, {}]);

    const told = page.waitForRequest("**/affiliate/signups");
    await page.evaluate(() => bannerAnswered(true));
    const referral = await page.evaluate(() => window.asked);
    assert.match(referral, /^vis_/);
    const { email, referral: of } = (await told).postDataJSON();
    assert.deepEqual([email, of], ["grace@example.net", referral]);
    assert.equal((await w.cookies()).stx_ref.value, referral);

    // The next page waits for consent again, and then has the visit without a request.
    const next = await w.visit(path, watched);
    assert.deepEqual(await next.evaluate(() => [stx.referral, window.looked]), ["", 0]);
    assert.equal(await next.evaluate(async () => (stx.consent(true), (await stx.ready).referral)), referral);
    assert.equal(w.told("visits").length, 1);
  },

  async "consent given before the script is loaded"(w) {
    const page = await w.visit(w.linked(w.page(w.stub + "<script>stx.consent(true);</script>" + w.tag(waiting))));
    assert.match((await w.known(page)).referral, /^vis_/);
  },

  async "without an answer, ready fires in time"(w) {
    const page = await w.visit(w.linked(w.page(w.stub + w.tag(waiting))), { before: (page) => page.clock.install() });
    await page.evaluate(
      () => (window.asked = new Promise((done) => stx.ready((given) => done(given.referral)))) && 0,
    );
    await page.clock.fastForward(3000);
    assert.equal(await page.evaluate(() => window.asked), "");
    assert.equal(w.requestsTo("visits").length, 0);
  },

  async "a refusal takes effect at once and discards a queued sign-up"(w) {
    const page = await w.visit(w.linked(w.page(w.stub + w.tag(waiting))), { before: (page) => page.clock.install() });
    await page.evaluate(() => {
      window.signedUp = stx.referralSignup("grace@example.net");
      stx.consent(false);
    });
    assert.deepEqual(await w.known(page), NOBODY);
    await page.evaluate(() => window.signedUp);
    assert.deepEqual(
      w.requests.filter((request) => request.method() == "POST"),
      [],
    );
  },

  async "a refusal deletes all stored cookies, and consent starts again"(w) {
    await w.context.addCookies([
      { name: "stx_ref", value: "vis_old", url: w.shop.at("www.shop.localhost") },
      { name: "theirs", value: "1", url: w.shop.at("www.shop.localhost") },
    ]);
    const page = await w.visit(w.linked(w.page()));
    const { referral } = await w.known(page);
    await page.evaluate(() => stx.consent(false));
    assert.deepEqual(Object.keys(await w.cookies()), ["theirs"]);
    assert.deepEqual(await w.known(page), NOBODY);
    await page.evaluate(() => stx.referralSignup("grace@example.net"));
    assert.equal(w.requestsTo("signups").length, 0);
    await page.evaluate(() => stx.consent(true));
    assert.notEqual((await w.known(page)).referral, "");
    assert.notEqual((await w.known(page)).referral, referral);
  },

  async "a refusal while a response is pending"(w) {
    let release;
    const released = new Promise((done) => (release = done));
    await w.context.route("**/affiliate/visits", async (route) => (await released, route.continue()));
    const asked = w.context.waitForEvent("request", (request) => request.url().endsWith("/affiliate/visits"));
    const page = await w.visit(w.linked(w.page()));
    await asked;
    await page.evaluate(() => stx.consent(false));
    const answered = page.waitForResponse("**/affiliate/visits");
    release();
    await (await answered).finished();
    assert.deepEqual(await w.known(page), NOBODY);
    assert.deepEqual(await w.cookies(), {});
  },

  async "only true is consent"(w) {
    const page = await w.visit(w.linked(w.page(w.stub + w.tag(waiting))));
    for (const answer of ["false", 1, null, undefined, {}])
      await page.evaluate((answer) => stx.consent(answer), answer);
    assert.deepEqual([await w.known(page), w.requestsTo("visits").length], [NOBODY, 0]);
  },

  async "a browser with Global Privacy Control or Do Not Track needs consent"(w) {
    for (const [name, value] of [
      ["globalPrivacyControl", true],
      ["doNotTrack", "1"],
    ]) {
      await w.context.clearCookies();
      const before = (page) =>
        page.addInitScript(
          ([name, value]) => {
            Object.defineProperty(Navigator.prototype, name, { get: () => value });
          },
          [name, value],
        );
      const page = await w.visit(w.linked(w.page()), { before });
      assert.equal(await page.evaluate(() => stx.referral), "");
      const asked = w.requestsTo("visits").length;
      await page.evaluate(() => stx.consent(true));
      assert.match((await w.known(page)).referral, /^vis_/);
      assert.equal(w.requestsTo("visits").length, asked + 1);
    }
    assert.equal(w.requestsTo("visits").length, 2);
  },

  async "a site may ignore Global Privacy Control; otherwise the console shows a note"(w) {
    for (const [attributes, heeds] of [[{}, true], [{ "data-respect-gpc": "false" }, false]]) {
      await w.context.clearCookies();
      const said = [];
      const before = (page) => {
        page.on("console", (line) => said.push(line.text()));
        return page.addInitScript(() => {
          Object.defineProperty(Navigator.prototype, "globalPrivacyControl", { get: () => true });
        });
      };
      const page = await w.visit(w.linked(w.page(w.stub + w.tag(attributes))), { before });
      assert.equal((await w.known(page)).referral === "", heeds);
      const told = said.filter((line) => line.includes("Global Privacy Control"));
      assert.equal(told.length, heeds ? 1 : 0);
    }
  },
};
