// Links: parameters and their order, unknown tokens, the request of a visit, and attribution.
import assert from "node:assert/strict";

const NOBODY = { referral: "", affiliate: null };

export const anywhere = {
  async "a link leads to a checkout that names the visit"(w) {
    const [token] = w.program.tokens;
    const page = await w.visit(`${w.page()}?via=${token}&sub_id=june&utm_source=x#part`);
    const { referral, affiliate } = await w.known(page);
    assert.match(referral, /^vis_[A-Za-z0-9_-]{1,60}$/);
    assert.deepEqual(Object.keys(affiliate), ["id", "name", "first_name"]);

    const [visit, ...more] = w.told("visits");
    assert.equal(more.length, 0);
    assert.match(visit.visitor, /^[0-9a-f]{32}$/);
    assert.equal((await w.cookies()).stx_vid.value, visit.visitor);
    const { visitor, ...told } = visit;
    const url = w.shop.at("www.shop.localhost", `/page-1?via=${token}&sub_id=june&utm_source=x`);
    assert.deepEqual(told, { key: w.program.key, token, param: "via", url, referrer: "", sub_id: "june" });

    // Another subdomain and page without a link: the visit is known at once without a further request.
    const shopping = await w.visit(
      w.shop.at("app.shop.localhost", w.page(w.stub + w.tag(), w.example("Checkout with Stripe"))),
    );
    assert.equal(await shopping.evaluate(() => stx.referral), referral);
    assert.deepEqual((await w.known(shopping)).affiliate, affiliate);
    await Promise.all([shopping.waitForURL("**/checkout"), shopping.click("button")]);
    assert.deepEqual(w.shop.orders, [{ mode: "subscription", client_reference_id: referral }]);
    assert.equal(w.told("visits").length, 1);
  },

  async "without a link nothing is sent and nothing is stored"(w) {
    const page = await w.visit(w.page(w.stub + w.tag(), w.example("Checkout with Stripe")));
    assert.deepEqual(await w.known(page), NOBODY);
    await Promise.all([page.waitForURL("**/checkout"), page.click("button")]);
    assert.deepEqual(w.shop.orders, [{ mode: "subscription" }]);
    assert.deepEqual([w.requestsTo("visits").length, await w.cookies()], [0, {}]);
  },

  async "an unknown token stores nothing"(w) {
    const page = await w.visit(w.page() + "?ref=producthunt");
    assert.deepEqual(await w.known(page), NOBODY);
    assert.deepEqual([w.told("visits").map((visit) => visit.param), await w.cookies()], [["ref"], {}]);
  },

  async "the site's parameters come first, then via, then ref"(w) {
    const [ada, bob] = w.program.tokens;
    const path = w.page(w.stub + w.tag({ "data-ref-params": "aff, partner" }));
    for (const [query, param, token] of [
      [`ref=${bob}&via=${ada}`, "via", ada],
      [`ref=${bob}&via=${bob}&partner=${ada}`, "partner", ada],
      [`partner=${bob}&ref=${bob}&aff=${ada}`, "aff", ada],
    ]) {
      await w.known(await w.visit(`${path}?${query}`));
      const last = w.told("visits").at(-1);
      assert.deepEqual([last.param, last.token], [param, token]);
    }
    assert.equal(w.told("visits").length, 3);
  },

  async "after an unknown token the next one is tried"(w) {
    const [ada] = w.program.tokens;
    const page = await w.visit(`${w.page(w.stub + w.tag({ "data-ref-params": "aff" }))}?aff=99-none&ref=${ada}&via=`);
    assert.notEqual((await w.known(page)).referral, "");
    assert.deepEqual(
      w.told("visits").map((visit) => visit.param),
      ["aff", "ref"],
    );
  },

  async "the referrer is sent"(w) {
    const [ada] = w.program.tokens;
    const from = w.shop.at(
      "other.localhost",
      w.page("", `<a href="${w.shop.at("www.shop.localhost", "/page-2")}?via=${ada}">go</a>`),
    );
    const page = await w.visit(from);
    w.page();
    await page.click("a");
    await page.waitForLoadState();
    await w.known(page);
    assert.equal(w.told("visits")[0].referrer, w.shop.at("other.localhost", "/"));
  },

  async "a visit is transferred to another domain"(w) {
    const [ada] = w.program.tokens;
    const page = await w.visit(`${w.page(w.stub + w.tag(), w.example("Checkout on another domain"))}?via=${ada}`);
    const known = await w.known(page);
    const to = await page.getAttribute("a.to-shop", "href");
    assert.equal(to, w.shop.at("other.localhost", `/?stx_ref=${known.referral}`));
    const other = await w.visit(w.shop.at("other.localhost", "/page-1") + new URL(to).search);
    assert.deepEqual(await w.known(other), known);
    const { param, token } = w.told("visits").at(-1);
    assert.deepEqual([param, token], ["stx_ref", known.referral]);
    assert.equal((await w.cookies("app.other.localhost")).stx_ref.value, known.referral);
  },
};

export const withStandIn = {
  async "a visit is sent without a preflight request and without cookies"(w) {
    const arrival = w.program.arrival("/affiliate/visits");
    await w.known(await w.visit(w.page() + "?via=ada"));
    const { headers } = await arrival;
    assert.equal(headers["content-type"], "text/plain;charset=UTF-8");
    assert.equal(headers.origin, w.shop.at("www.shop.localhost", ""));
    assert.equal(headers.cookie, undefined);
    assert.deepEqual(w.program.methods, new Set(["GET", "POST"]));
  },

  async "the server decides which of two links gets the credit"(w) {
    const path = w.page();
    const first = await w.known(await w.visit(path + "?via=ada"));
    assert.deepEqual(await w.known(await w.visit(path + "?via=bob")), first);
    w.program.attribution = "last_click";
    const last = await w.known(await w.visit(path + "?via=bob"));
    assert.equal(last.affiliate.name, "Bob Bemer");
    assert.deepEqual(await w.known(await w.visit(path)), last);
    assert.equal(new Set(w.told("visits").map((visit) => visit.visitor)).size, 1);
  },

  async "a link without JavaScript redirects with the visit and counts one click"(w) {
    const path = w.page();
    const page = await w.visit(`${w.program.url}/r/ada?key=${w.program.key}`);
    assert.equal(new URL(page.url()).pathname, path);
    const known = await w.known(page);
    assert.equal(known.affiliate.id, "aff_ada");
    assert.equal(known.referral, new URL(page.url()).searchParams.get("stx_ref"));
    assert.equal(w.program.visits.size, 1);
  },

  async "a transferred visit is valid for the page when the server is unreachable"(w) {
    await w.answerVisits(503);
    const page = await w.visit(w.page() + "?stx_ref=vis_0123");
    assert.deepEqual(await w.known(page), { referral: "vis_0123", affiliate: null });
    assert.deepEqual(await w.cookies(), {});
  },

  async "an unknown transferred visit is discarded"(w) {
    const page = await w.visit(w.page() + "?stx_ref=vis_0123&via=bob");
    assert.equal((await w.known(page)).affiliate.id, "aff_bob");
    assert.deepEqual(
      w.told("visits").map((visit) => visit.param),
      ["stx_ref", "via"],
    );
    await w.context.clearCookies();
    assert.deepEqual(await w.known(await w.visit("/page-1?stx_ref=vis_0123")), NOBODY);
  },
};
