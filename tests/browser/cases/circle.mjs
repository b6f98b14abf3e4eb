// The whole flow against a real server: click, sign-up, checkout, the processor's events, commission.
import assert from "node:assert/strict";

/** Polls until there is a result: pages send their requests in the background. */
async function once(find) {
  for (let tries = 0; tries < 200; tries += 1) {
    const found = await find();
    if (found) return found;
    await new Promise((done) => setTimeout(done, 25));
  }
  throw new Error("timed out");
}

const of = (w, email) => async () =>
  (await w.program.api("GET", "/affiliate-referrals?email=" + encodeURIComponent(email))).data[0];

/** The processor's events of a payment, the invoice first. */
async function pays(w, order, { customer, email }) {
  const id = customer.replace("cus_", "in_");
  await w.program.pay("invoice.paid", {
    id, object: "invoice", customer, customer_email: email, currency: "usd", status: "paid",
    total: 4900, total_excluding_tax: 4900, amount_paid: 4900,
    status_transitions: { paid_at: Math.floor(Date.now() / 1000) },
  });
  await w.program.pay("checkout.session.completed", {
    id: customer.replace("cus_", "cs_"), object: "checkout.session", customer, customer_details: { email },
    payment_status: "paid", amount_total: 4900, currency: "usd", invoice: id, ...order,
  });
}

export const withServer = {
  async "click, sign-up, checkout, invoice, commission"(w) {
    const email = `grace-${Date.now()}@example.net`;
    const page = await w.visit(
      w.linked(w.page(w.stub + w.tag(), w.example("Sign-up") + w.example("Checkout with Stripe"))) + "&sub_id=june",
    );
    const { referral: visit, affiliate } = await w.known(page);
    assert.deepEqual([affiliate.name, affiliate.first_name], ["Ada Lovelace", "Ada"]);
    await page.evaluate((email) => stx.referralSignup(email), email);
    const lead = await once(of(w, email));
    assert.deepEqual(
      [lead.status, lead.source, lead.sub_id, lead.affiliate_id],
      ["lead", "signup", "june", affiliate.id],
    );

    await Promise.all([page.waitForURL("**/checkout"), page.click("form[action='/checkout'] button")]);
    const [order] = w.shop.orders;
    assert.equal(order.client_reference_id, visit);
    await pays(w, order, { customer: "cus_" + lead.id, email });

    const { data } = await w.program.api("GET", "/affiliate-commissions?referral_id=" + lead.id);
    assert.deepEqual(
      data.map((line) => [line.status, line.amount_cents, line.sale_amount_cents, line.affiliate_id]),
      [["earned", 980, 4900, affiliate.id]],
    );
    assert.equal((await of(w, email)()).status, "active");
    assert.equal(w.program.admin("audit").ok, true);
  },

  async "without a script, and without a sign-up"(w) {
    const email = `edsger-${Date.now()}@example.net`;
    w.page(w.stub + w.tag(), w.example("Checkout with Stripe"));
    const page = await w.visit(`${w.program.url}/r/ada?key=${w.program.key}&sub_id=may`);
    const { referral } = await w.known(page);
    assert.equal(new URL(page.url()).searchParams.get("stx_ref"), referral);
    await Promise.all([page.waitForURL("**/checkout"), page.click("button")]);
    await pays(w, w.shop.orders[0], { customer: "cus_" + referral, email });
    const referred = await of(w, email)();
    assert.deepEqual([referred.status, referred.source, referred.sub_id], ["active", "checkout", "may"]);
  },

  async "with the API blocked by a browser extension, the shop's own path works"(w) {
    await w.context.route(w.program.url + "/**", (route) => route.abort("blockedbyclient"));
    const own = w.page(w.stub + w.tag({}, "/px/stx.js"));
    const page = await w.visit(`${own}?via=ada`);
    const { referral } = await w.known(page);
    assert.match(referral, /^vis_/);
    const cookies = await w.cookies();
    assert.deepEqual([cookies.stx_ref.value, cookies.stx_ref.domain], [referral, ".shop.localhost"]);
    assert.ok(cookies.stx_vid.expires - Date.now() / 1000 > 300 * 86_400, "the server's cookie lives longer");
  },

  async "a crawler leaves nothing behind"(w) {
    const before = (page) =>
      page.route("**/affiliate/visits", (route) =>
        route.continue({ headers: { ...route.request().headers(), "user-agent": "Mozilla/5.0 (compatible; Googlebot/2.1)" } }),
      );
    const page = await w.visit(w.linked(w.page()), { before });
    assert.deepEqual([(await w.known(page)).referral, await w.cookies()], ["", {}]);
  },
};
