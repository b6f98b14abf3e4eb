// Sign-ups and identification: which requests are sent, and when none is.
import assert from "node:assert/strict";

export const anywhere = {
  async "sign-ups and addresses are sent with the visit"(w) {
    const page = await w.visit(w.linked(w.page()));
    const { referral } = await w.known(page);
    const { visitor } = w.told("visits")[0],
      { key } = w.program;
    await page.evaluate(() =>
      Promise.all([
        stx.referralSignup("grace@example.net"),
        stx.referralSignup({ email: " Grace+a@Example.net " }),
        stx.identify({ email: "hedy@example.net" }),
        stx.identify("hedy@example.net"),
      ]),
    );
    assert.deepEqual(
      w.told("signups"),
      ["grace@example.net", "Grace+a@Example.net"].map((email) => ({ key, visitor, referral, email })),
    );
    assert.deepEqual(
      w.told("identify"),
      [1, 2].map(() => ({ key, visitor, referral, email: "hedy@example.net" })),
    );
    for (const request of [...w.requestsTo("signups"), ...w.requestsTo("identify")]) {
      assert.equal((await request.response()).status(), 202);
    }
  },

  async "calls before the response are sent after it"(w) {
    let release;
    const released = new Promise((done) => (release = done));
    await w.context.route("**/affiliate/visits", async (route) => (await released, route.continue()));
    const page = await w.visit(
      w.linked(w.page(w.stub + "<script>stx.identify({email: 'hedy@example.net'});</script>" + w.tag())),
    );
    assert.equal(w.requestsTo("identify").length, 0);
    const told = page.waitForRequest("**/affiliate/identify");
    release();
    assert.match((await told).postDataJSON().referral, /^vis_/);
  },

  async "without a visit nothing is sent"(w) {
    const page = await w.visit();
    await page.evaluate(() =>
      Promise.all([stx.referralSignup("grace@example.net"), stx.identify({ email: "hedy@example.net" })]),
    );
    assert.deepEqual(
      w.requests.filter((request) => request.method() == "POST"),
      [],
    );
  },

  async "an invalid address is not sent and throws nothing"(w) {
    const page = await w.visit(w.linked(w.page()));
    await w.known(page);
    await page.evaluate(() =>
      Promise.all(
        [
          "",
          "grace",
          "a b@c",
          "@",
          `${"a".repeat(255)}@b`,
          null,
          undefined,
          7,
          {},
          [],
          { email: null },
          { email: { a: 1 } },
        ].flatMap((odd) => [stx.referralSignup(odd), stx.identify(odd)]),
      ),
    );
    assert.deepEqual([w.told("signups"), w.told("identify")], [[], []]);
  },

  async "an unreachable server causes no error"(w) {
    const page = await w.visit(w.linked(w.page()));
    await w.known(page);
    await w.context.route("**/affiliate/{signups,identify}", (route) => route.abort("failed"));
    await page.evaluate(() =>
      Promise.all([stx.referralSignup("grace@example.net"), stx.identify({ email: "hedy@example.net" })]),
    );
  },
};

export const withStandIn = {
  async "a sign-up survives leaving the page at once"(w) {
    const path = w.page(w.stub + w.tag(), w.example("Sign-up"));
    const { referral } = await w.known(await w.visit(path + "?via=ada"));
    const page = await w.visit(path);
    // Without keepalive a request may be lost, so the test rejects requests without it.
    await page.evaluate(() => {
      const asked = window.fetch;
      window.fetch = (to, options) => (options.keepalive ? asked(to, options) : Promise.reject(new Error("left")));
    });
    await page.fill("input", "grace@example.net");
    const arrival = w.program.arrival("/affiliate/signups");
    await Promise.all([page.waitForURL("**/signup"), page.click("button")]);
    const { visitor, ...told } = JSON.parse((await arrival).text);
    assert.deepEqual(told, { key: w.program.key, referral, email: "grace@example.net" });
    assert.equal(visitor, w.told("visits")[0].visitor);
  },
};
