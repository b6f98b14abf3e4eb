// Cookies: names, domains and lifetimes; and browsers without cookies.
import assert from "node:assert/strict";

const DAY_S = 24 * 3600;
const inDays = (cookie) => (cookie.expires - Date.now() / 1000) / DAY_S;

export const anywhere = {
  async "three cookies, for the site and its subdomains"(w) {
    const page = await w.visit(w.linked(w.page()));
    const { referral, affiliate } = await w.known(page);
    const all = await w.cookies();
    assert.deepEqual(Object.keys(all).sort(), ["stx_aff", "stx_ref", "stx_vid"]);
    for (const cookie of Object.values(all)) {
      const { domain, path, sameSite, secure, httpOnly } = cookie;
      assert.deepEqual(
        { domain, path, sameSite, secure, httpOnly },
        { domain: ".shop.localhost", path: "/", sameSite: "Lax", secure: false, httpOnly: false },
      );
    }
    assert.equal(all.stx_ref.value, referral);
    assert.deepEqual(JSON.parse(decodeURIComponent(all.stx_aff.value)), affiliate);
    assert.ok(inDays(all.stx_vid) > 390 && inDays(all.stx_vid) <= 396);
    assert.equal(await page.evaluate(() => localStorage.length + sessionStorage.length), 0);
  },

  async "an existing visitor id is kept"(w) {
    const url = w.shop.at("www.shop.localhost", "/");
    await w.context.addCookies([{ name: "stx_vid", value: "from-visits.js", url }]);
    await w.known(await w.visit(w.linked(w.page())));
    assert.equal(w.told("visits")[0].visitor, "from-visits.js");
    assert.equal((await w.cookies()).stx_vid.value, "from-visits.js");
  },

  "with cookies blocked, the page itself still knows the visit": {
    blocked: true,
    async run(w) {
      const page = await w.visit(w.linked(w.page()));
      assert.equal(
        await page.evaluate(() => {
          try {
            return String(localStorage);
          } catch (error) {
            return error.name;
          }
        }),
        "SecurityError",
      );
      const { referral, affiliate } = await w.known(page);
      assert.match(referral, /^vis_/);
      assert.notEqual(affiliate, null);
      const sent = page.waitForRequest("**/affiliate/signups");
      await page.evaluate(() => stx.referralSignup("grace@example.net"));
      assert.equal((await sent).postDataJSON().referral, referral);
      assert.deepEqual(await w.known(await w.visit("/page-1")), { referral: "", affiliate: null });
    },
  },
};

export const withStandIn = {
  async "cookies expire when the server says"(w) {
    await w.known(await w.visit(w.page() + "?via=ada"));
    const { stx_ref, stx_aff } = await w.cookies();
    for (const cookie of [stx_ref, stx_aff])
      assert.ok(inDays(cookie) > 59 && inDays(cookie) <= 60.01, String(inDays(cookie)));
  },

  async "the cookie domain is the registrable domain"(w) {
    const path = w.page(),
      page = await w.visit(path);
    for (const [host, domain] of [
      ["shop.localhost", ".shop.localhost"],
      ["a.b.shop.localhost", ".shop.localhost"],
      ["www.shop.co.uk", ".shop.co.uk"],
      ["shop.github.io", ".shop.github.io"],
      ["localhost", "localhost"],
      ["127.0.0.1", "127.0.0.1"],
    ]) {
      await w.context.clearCookies();
      await w.known(await w.visit(w.shop.at(host, path) + "?via=ada", { page }));
      const all = Object.values(await w.cookies(host))
        .map((cookie) => [cookie.name, cookie.domain])
        .sort();
      assert.deepEqual(
        all,
        ["stx_aff", "stx_ref", "stx_vid"].map((name) => [name, domain]),
      );
    }
  },

  async "the site may set the cookie domain; an impossible one is ignored"(w) {
    for (const [named, domain] of [
      ["b.shop.localhost", ".b.shop.localhost"],
      [".b.shop.localhost", ".b.shop.localhost"],
      ["elsewhere.example", ".shop.localhost"],
    ]) {
      await w.context.clearCookies();
      const path = w.page(w.stub + w.tag({ "data-cookie-domain": named }));
      await w.known(await w.visit(w.shop.at("a.b.shop.localhost", path) + "?via=ada"));
      assert.equal((await w.cookies("a.b.shop.localhost")).stx_ref.domain, domain);
    }
  },

  async "a host-only cookie of the same name is replaced"(w) {
    const url = w.shop.at("www.shop.localhost", "/");
    await w.context.addCookies([{ name: "stx_ref", value: "vis_old", url }]);
    const page = await w.visit(w.page() + "?via=ada");
    const { referral } = await w.known(page);
    assert.notEqual(referral, "vis_old");
    assert.equal((await w.known(await w.visit("/page-1"))).referral, referral);
  },

  async "an expiry in the past, far in the future, or missing"(w) {
    const page = await w.visit();
    for (const [expires_at, days] of [
      ["2020-01-01T00:00:00Z", null],
      ["9999-12-31T00:00:00Z", 400],
      ["soon", "session"],
      [{}, "session"],
    ]) {
      await w.context.clearCookies();
      await w.context.unroute("**/affiliate/visits");
      await w.answerVisits(200, JSON.stringify({ referral: "vis_1", affiliate: null, expires_at }));
      assert.equal((await w.known(await w.visit("/page-1?via=ada", { page }))).referral, "vis_1");
      const cookie = (await w.cookies()).stx_ref;
      const found = cookie && (cookie.expires == -1 ? "session" : Math.round(inDays(cookie)));
      assert.equal(found ?? null, days);
    }
  },
};
