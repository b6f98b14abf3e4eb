// The environment of a case: a browser without state, the shop, the API, and the examples of docs/STX.md.
import { readFileSync } from "node:fs";

const DOCUMENT = new URL("../../docs/STX.md", import.meta.url);
const PATIENCE_MS = 10_000;

export class World {
  constructor({ context, shop, program, modules, binary, isBrief }) {
    // `strange`: uncaught errors and dialogs of pages; no case expects any.
    Object.assign(this, { context, shop, program, modules, binary, isBrief, requests: [], strange: [] });
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

  /** Resets the browser for the next case; starting a new one would take most of the time.
   *  Returns false after closing it if the case installed a fake clock, which cannot be removed. */
  async leave() {
    for (const [what, hear] of Object.entries(this.heard)) this.context.off(what, hear);
    if (this.hasClock) return this.context.close().then(() => false);
    const [, ...pages] = this.context.pages();
    await this.context.unrouteAll({ behavior: "ignoreErrors" });
    await Promise.all(pages.map((page) => page.close()));
    await this.context.clearCookies();
    return true;
  }

  /** The script tag, with further attributes besides the key. */
  tag(attributes = {}, src = this.program.url + "/stx.js") {
    const all = Object.entries({ "data-key": this.program.key, ...attributes });
    return `<script async src="${src}" ${all.map(([name, value]) => `${name}="${value}"`).join(" ")}></script>`;
  }

  /** The stub before the tag in docs/STX.md. */
  get stub() {
    return this.example("The tag").split("<script async")[0];
  }

  /** The examples of a section of docs/STX.md in a language, adapted to this shop and API. */
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

  /** Adds a page; returns its path. */
  page(head = this.stub + this.tag(), body = "") {
    return this.shop.page(`<!doctype html><meta charset="utf-8"><title>A page</title>${head}<body>${body}</body>`);
  }

  /** The page's path with a partner's token. */
  linked(to) {
    return `${to}?via=${this.program.tokens[0]}`;
  }

  /** Opens a path at the shop's usual host, or a URL, and waits until it is loaded. */
  async visit(to = this.page(), { page, waitUntil = "load", before } = {}) {
    const here = page ?? (await this.context.newPage());
    if (before) await before(here);
    await here.goto(to.startsWith("/") ? this.shop.at("www.shop.localhost", to) : to, { waitUntil });
    return here;
  }

  /** Referral and affiliate of a page once `stx.ready` fires. */
  known(page) {
    return page.evaluate(async () => {
      await stx.ready;
      return { referral: stx.referral, affiliate: stx.affiliate };
    });
  }

  /** Bodies that were sent to `/affiliate/{what}`, in order. */
  told(what) {
    return this.requestsTo(what).map((request) => JSON.parse(request.postData()));
  }

  requestsTo(what) {
    return this.requests.filter(
      (request) => request.url().endsWith("/affiliate/" + what) && request.method() == "POST",
    );
  }

  /** The cookies of a host, by name. */
  async cookies(host = "www.shop.localhost") {
    const all = await this.context.cookies([this.shop.at(host), this.shop.secureAt(host)]);
    return Object.fromEntries(all.map((cookie) => [cookie.name, cookie]));
  }

  /** Answers requests to the API: with a status and a body, or (null) never. */
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
