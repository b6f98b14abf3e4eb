// The script below the site's own address: the server sets the cookies and the script does not change them. And https.
import assert from "node:assert/strict";

const written = (page) =>
  page.addInitScript(() => {
    const { get, set } = Object.getOwnPropertyDescriptor(Document.prototype, "cookie");
    window.written = [];
    Object.defineProperty(Document.prototype, "cookie", {
      get,
      set(value) {
        window.written.push(value.split("=")[0]);
        set.call(this, value);
      },
    });
  });

export const anywhere = {
  async "requests are same-origin and name the cookie domain"(w) {
    const page = await w.visit(w.linked(w.page(w.stub + w.tag({}, "/px/stx.js"))));
    const { referral } = await w.known(page);
    await page.evaluate(() => stx.referralSignup("grace@example.net"));
    const [visit] = w.requestsTo("visits"),
      [signup] = w.requestsTo("signups");
    assert.equal(visit.url(), w.shop.at("www.shop.localhost", "/px/affiliate/visits"));
    assert.equal(signup.url(), w.shop.at("www.shop.localhost", "/px/affiliate/signups"));
    assert.equal(w.told("visits")[0].domain, "shop.localhost");
    assert.equal((await w.cookies("app.shop.localhost")).stx_ref.value, referral);
  },

  async "over https the cookies are Secure"(w) {
    const page = await w.visit(
      w.shop.secureAt("www.shop.localhost", w.page(w.stub + w.tag({}, "/px/stx.js"))) + `?via=${w.program.tokens[0]}`,
    );
    await w.known(page);
    const all = Object.values(await w.cookies());
    assert.deepEqual(
      all.map((cookie) => cookie.secure),
      [true, true, true],
    );
  },
};

export const withStandIn = {
  async "the server's cookies are not overwritten"(w) {
    const path = w.page(w.stub + w.tag({}, "/px/stx.js"));
    for (const token of ["ada", "bob"]) {
      const page = await w.visit(`${path}?via=${token}`, { before: written });
      const { affiliate } = await w.known(page);
      assert.equal(affiliate.id, "aff_ada");
      assert.deepEqual(new Set(await page.evaluate(() => window.written)), new Set(["stx_try"]));
    }
    const all = await w.cookies();
    assert.deepEqual(Object.keys(all).sort(), ["stx_aff", "stx_ref", "stx_vid"]);
    for (const { domain, sameSite } of Object.values(all))
      assert.deepEqual([domain, sameSite], [".shop.localhost", "Lax"]);
  },

  async "the script sets cookies if the server sets none"(w) {
    const page = await w.visit(w.shop.secureAt("www.shop.localhost", w.page()) + "?via=ada", { before: written });
    const { referral } = await w.known(page);
    const all = await w.cookies();
    assert.equal(all.stx_ref.value, referral);
    assert.deepEqual(
      Object.values(all).map((cookie) => cookie.secure),
      [true, true, true],
    );
    assert.equal(w.told("visits")[0].domain, undefined);
    const names = new Set(await page.evaluate(() => window.written));
    assert.deepEqual(names, new Set(["stx_try", "stx_vid", "stx_aff", "stx_ref"]));
  },
};
