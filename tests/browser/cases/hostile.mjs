// Untrusted input: URLs, cookies, responses, markup. It is accepted only in the expected format.
import assert from "node:assert/strict";

const NOBODY = { referral: "", affiliate: null };
const SCRIPT = "<img src=x onerror=alert(1)>";
const answer = (more) =>
  JSON.stringify({ referral: "vis_1", affiliate: null, expires_at: "2099-01-01T00:00:00Z", ...more });

export const anywhere = {
  async "malformed tokens are not sent"(w) {
    const path = w.page(),
      page = await w.visit(path);
    for (const token of [
      SCRIPT,
      "a",
      "a".repeat(41),
      "a b",
      "a;b",
      "ä".repeat(5),
      "a\u0000b",
      "%",
      "../x",
      "vis_<x>",
    ]) {
      for (const name of ["via", "ref", "stx_ref"]) {
        assert.deepEqual(
          await w.known(await w.visit(`${path}?${name}=${encodeURIComponent(token)}`, { page })),
          NOBODY,
        );
      }
    }
    assert.deepEqual(await w.known(await w.visit(`${path}?via=%E0%A4%A&ref=%&stx_ref[]=vis_1&via`)), NOBODY);
    assert.deepEqual([w.requestsTo("visits").length, await w.cookies()], [0, {}]);
  },

  async "requests are bounded"(w) {
    const params = Array.from({ length: 50 }, (_, n) => "p" + n);
    const path = w.page(w.stub + w.tag({ "data-ref-params": params.join(",") }));
    const query = params.map((name) => name + "=nobody-" + name).join("&");
    const page = await w.visit(`${path}?${query}&sub_id=${"s".repeat(500)}&more=${"m".repeat(5000)}`);
    assert.deepEqual(await w.known(page), NOBODY);
    const told = w.told("visits");
    assert.equal(told.length, 5);
    assert.deepEqual([told[0].url.length, told[0].sub_id.length], [2000, 100]);
    assert.ok(w.requestsTo("visits").every((request) => request.postData().length < 8 << 10));
  },

  async "foreign or malformed cookies"(w) {
    const url = w.shop.at("www.shop.localhost", "/"),
      path = w.page(),
      page = await w.context.newPage();
    const put = async (all) => {
      await w.context.clearCookies();
      await w.context.addCookies(Object.entries(all).map(([name, value]) => ({ name, value, url })));
      return w.known(await w.visit(path, { page }));
    };
    for (const stx_ref of [SCRIPT, "x", "vis_", "vis_" + "a".repeat(61), "ref_1", "vis_1<", "%76is_1"]) {
      assert.deepEqual(await put({ stx_ref, stx_aff: "%7B%22id%22%3A%22a%22%7D" }), NOBODY, stx_ref);
    }
    for (const stx_aff of [
      "%",
      "%7B",
      "null",
      "1",
      "[]",
      "%22x%22",
      "{}",
      '{"id":1}',
      '{"id":""}',
      "a".repeat(4000),
    ]) {
      assert.deepEqual(await put({ stx_ref: "vis_1", stx_aff }), { referral: "vis_1", affiliate: null }, stx_aff);
    }
    const long = encodeURIComponent(
      JSON.stringify({ id: "a", name: "n".repeat(900), first_name: { toString: "x" }, more: 1 }),
    );
    assert.deepEqual((await put({ stx_ref: "vis_1", stx_aff: long })).affiliate, {
      id: "a",
      name: "n".repeat(100),
      first_name: null,
    });
    // Names that contain the script's cookie names, and an invalid visitor id.
    assert.deepEqual(await put({ xstx_ref: "vis_1", stx_ref2: "vis_2" }), NOBODY);
    await w.context.addCookies([{ name: "stx_vid", value: SCRIPT.replaceAll(" ", ""), url }]);
    await w.known(await w.visit(w.linked(path)));
    assert.match(w.told("visits").at(-1).visitor, /^[0-9a-f]{32}$/);
  },

  async "malformed responses"(w) {
    const page = await w.visit();
    for (const [more, wanted] of [
      [{ referral: ["vis_1"] }, { referral: "vis_1", affiliate: null }],
      [{ referral: "vis_1; Domain=x" }, NOBODY],
      [{ referral: { toString: 1 } }, NOBODY],
      [{ affiliate: SCRIPT }, { referral: "vis_1", affiliate: null }],
      [{ affiliate: { id: [], name: "x" } }, { referral: "vis_1", affiliate: null }],
      [
        { affiliate: { id: "a", name: 3, first_name: null, admin: true } },
        { referral: "vis_1", affiliate: { id: "a", name: null, first_name: null } },
      ],
    ]) {
      await w.context.clearCookies();
      await w.context.unroute("**/affiliate/visits");
      await w.answerVisits(200, answer(more));
      assert.deepEqual(await w.known(await w.visit(w.linked("/page-1"), { page })), wanted, JSON.stringify(more));
    }
  },

  async "names are text, bounded, and survive the cookie"(w) {
    const wild = `${SCRIPT};,="\\\u2028'${"😀".repeat(400)}`;
    await w.answerVisits(200, answer({ affiliate: { id: "aff_1", name: wild, first_name: "\ud83d" + wild } }));
    const path = w.page(w.stub + w.tag(), w.example("Greet the visitor"));
    const first = await w.known(await w.visit(w.linked(path)));
    assert.equal([...first.affiliate.name].length, 100);
    assert.ok(first.affiliate.name.startsWith(SCRIPT));
    const page = await w.visit(path);
    assert.deepEqual(await w.known(page), first);
    await page.waitForSelector("#greeting:not([hidden])");
    assert.equal(await page.evaluate(() => document.querySelectorAll("img").length), 0);
    assert.ok((await w.cookies()).stx_aff.value.length < 3000);
  },

  async "DOM clobbering"(w) {
    const markup = `<img name="currentScript" src="https://evil.example/stx.js" data-key="pk_evil">
      <a id="stx"></a><a id="stx" name="q"></a>`;
    // Without the stub, \`window.stx\` is an element when the script starts.
    const page = await w.visit(w.linked(w.page(markup + w.tag())));
    assert.match((await w.known(page)).referral, /^vis_/);
    assert.deepEqual(
      w.requests.filter((request) => request.method() == "POST").map((request) => new URL(request.url()).origin),
      [w.program.url],
    );
    for (const name of ["cookie", "referrer", "querySelector", "addEventListener"]) {
      const odd = await w.visit(
        `${w.page(w.stub + w.tag(), `<form name="${name}"></form>`)}?via=${w.program.tokens[0]}`,
      );
      await w.known(odd);
    }
  },
};
