// What a case sees: a browser that knows nobody yet, the shop, the API, and the examples of docs/STX.md.
import { readFileSync } from "node:fs";

const DOCUMENT = new URL("../../docs/STX.md", import.meta.url);
const PATIENCE_MS = 10_000;

export class World {
  constructor({ context, shop, program }) {
    // `strange`: what a page threw, or asked the visitor; no case expects any.
    Object.assign(this, { context, shop, program, requests: [], strange: [] });
    context.setDefaultTimeout(PATIENCE_MS);
    this.heard = {
      request: (request) => this.requests.push(request),
      weberror: (error) => this.strange.push(error.error().message),
      dialog: (dialog) => (this.strange.push(dialog.message()), dialog.dismiss()),
    };
    for (const [what, hear] of Object.entries(this.heard)) context.on(what, hear);
    const { install } = Object.getPrototypeOf(context.clock);
    context.clock.install = (...how) => ((this.hasClock = true), install.apply(context.clock, how));
  }

  /** The browser is another case's from now on, and knows nobody: a new one for each is most of the time they take.
   *  False: it had a clock of its own put in, which stays, and is closed. */
  async leave() {
    for (const [what, hear] of Object.entries(this.heard)) this.context.off(what, hear);
    if (this.hasClock) return this.context.close().then(() => false);
    const [, ...pages] = this.context.pages();
    await this.context.unrouteAll({ behavior: "ignoreErrors" });
    await Promise.all(pages.map((page) => page.close()));
    await this.context.clearCookies();
    return true;
  }

  /** The tag, with these attributes beside the key. */
  tag(attributes = {}, src = this.program.url + "/stx.js") {
    const all = Object.entries({ "data-key": this.program.key, ...attributes });
    return `<script async src="${src}" ${all.map(([name, value]) => `${name}="${value}"`).join(" ")}></script>`;
  }

  /** What stands before the tag in docs/STX.md. */
  get stub() {
    return this.example("The tag").split("<script async")[0];
  }

  /** The examples of a section of docs/STX.md in a language, for this shop and this API. */
  example(section, language = "html") {
    const part = readFileSync(DOCUMENT, "utf8").split(`\n## ${section}\n`)[1].split("\n## ")[0];
    const blocks = [...part.matchAll(/^```(\w*)\n(.*?)^```/gms)].filter(([, of]) => of == language);
    return blocks
      .map(([, , text]) => text)
      .join("\n")
      .replaceAll("https://api.example.net", this.program.url)
      .replaceAll("pk_…", this.program.key)
      .replaceAll("https://shop.example.org", this.shop.at("other.localhost", ""));
  }

  /** Puts a page up; returns its path. */
  page(head = this.stub + this.tag(), body = "") {
    return this.shop.page(`<!doctype html><meta charset="utf-8"><title>A page</title>${head}<body>${body}</body>`);
  }

  /** A partner's link to it. */
  linked(to) {
    return `${to}?via=${this.program.tokens[0]}`;
  }

  /** Opens a path of the shop, at its usual host, or an address, and waits until it is loaded. */
  async visit(to = this.page(), { page, waitUntil = "load", before } = {}) {
    const here = page ?? (await this.context.newPage());
    if (before) await before(here);
    await here.goto(to.startsWith("/") ? this.shop.at("www.shop.localhost", to) : to, { waitUntil });
    return here;
  }

  /** What a page knows when it is ready. */
  known(page) {
    return page.evaluate(async () => {
      await stx.ready;
      return { referral: stx.referral, affiliate: stx.affiliate };
    });
  }

  /** What was sent to `/affiliate/{what}`: the bodies, in their order. */
  told(what) {
    return this.requestsTo(what).map((request) => JSON.parse(request.postData()));
  }

  requestsTo(what) {
    return this.requests.filter(
      (request) => request.url().endsWith("/affiliate/" + what) && request.method() == "POST",
    );
  }

  /** The cookies that a host sees, by name. */
  async cookies(host = "www.shop.localhost") {
    const all = await this.context.cookies([this.shop.at(host), this.shop.secureAt(host)]);
    return Object.fromEntries(all.map((cookie) => [cookie.name, cookie]));
  }

  /** Answers what is asked of the API in its place: with a status and a body, or (null) never. */
  answerVisits(status, body = "") {
    return this.context.route(
      "**/affiliate/visits",
      (route) =>
        status &&
        route.fulfill({
          status,
          body,
          headers: { "access-control-allow-origin": "*", "content-type": "application/json" },
        }),
    );
  }
}
