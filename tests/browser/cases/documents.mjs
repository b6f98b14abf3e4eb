// The examples of docs/STX.md, executed as written. The examples of checkout, sign-up, consent, greeting and another
// domain are used as pages in other cases.
import assert from "node:assert/strict";

export const anywhere = {
  async "the tag"(w) {
    const tag = w.example("The tag");
    assert.ok(tag.includes(w.tag().replace(" ></script>", "></script>").split('" data-key')[0]));
    const page = await w.visit(w.linked(w.page(tag)));
    assert.match((await w.known(page)).referral, /^vis_/);
  },

  async "a checkout session names the visit only if there is one"(w) {
    const AsyncFunction = (async () => {}).constructor;
    const example = new AsyncFunction(
      "request",
      "stripe",
      w.example("Checkout with Stripe", "js") + "\nreturn session;",
    );
    const stripe = { checkout: { sessions: { create: async (given) => given } } };
    const session = (referral) => example({ body: { referral } }, stripe);
    assert.equal((await session("vis_1")).client_reference_id, "vis_1");
    for (const none of ["", undefined]) assert.equal("client_reference_id" in (await session(none)), false);
  },

  async "a payment link contains the visit"(w) {
    const path = w.page(w.stub + w.tag(), w.example("Checkout with Stripe"));
    const page = await w.visit(path);
    await w.known(page);
    assert.equal(await page.getAttribute("#buy", "href"), "https://buy.stripe.com/test_4gw");
    const referred = await w.visit(w.linked(path));
    const { referral } = await w.known(referred);
    assert.equal(
      await referred.getAttribute("#buy", "href"),
      "https://buy.stripe.com/test_4gw?client_reference_id=" + referral,
    );
    assert.equal(await referred.inputValue("#referral"), referral);
  },

  async "a site that proxies requests with Next.js"(w) {
    const module = { exports: {} };
    new Function("module", w.example("Through your own site", "js"))(module);
    const rewrites = await module.exports.rewrites();
    assert.deepEqual(
      rewrites.map(({ source }) => source),
      ["/px/stx.js", "/px/affiliate/visits", "/px/affiliate/signups", "/px/affiliate/identify", "/px/r/:token"],
    );
    for (const { source, destination } of rewrites) assert.equal(destination, source.replace("/px", w.program.url));
  },
};
