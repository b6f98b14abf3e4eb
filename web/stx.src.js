// The affiliate program's browser script: by whose link a visitor came, so that a checkout can say it.
//
//   ?via=ada ─► POST affiliate/visits ─► cookies stx_ref, stx_aff, stx_vid ─► stx.referral, stx.affiliate
//
//   <script async src="https://API/stx.js" data-key="pk_…"></script>
//
// Served is web/stx.js, made of this file by web/minify. docs/STX.md is for those who use it.
//
// The server judges: which tokens are known, which of two visits stands, for how long. Nothing is kept unless it said
// so; of what comes from outside (address, cookies, answers) only what has the right shape and length is taken;
// nothing is ever put into the page; nothing throws into it; and `ready` fires whatever happens.
(function (win, doc) {
  "use strict";
  const { location, navigator } = win, DAY_S = 86400, WAIT_MS = 3000;
  const VISIT = /^vis_[\w-]{1,60}$/, TOKEN = /^[\w-]{2,40}$/, VISITOR = /^[\w.-]{8,64}$/;
  // What the page asked of the stub before this was here; see docs/STX.md.
  const before = win.stx, calls = before && Array.isArray(before.q) ? before.q : 0;
  // The tag stands twice, or a router put it in again.
  if (before && typeof before.ready == "function" && !calls) return;
  const stx = calls ? before : {};

  // An image that is named `currentScript` would stand in its place: only a script is believed.
  const ours = (element) => element && element.tagName == "SCRIPT" && element.hasAttribute("data-key") && element;
  const tag = ours(doc.currentScript) || ours(doc.querySelector("script[data-key]"));
  const attribute = (name) => (tag && tag.getAttribute("data-" + name)) || "";
  const key = attribute("key");
  // Served below a path of the site itself: then the server can set the cookies.
  const own = tag && tag.src.startsWith(location.origin + "/");
  // A page without an origin (a file, a sandboxed frame) has no cookies and no site that it could count for.
  const able = key && win.origin != "null";
  // A browser that objects (Global Privacy Control, Do Not Track) is like a banner that is not answered yet, unless the site
  // has chosen otherwise.
  const objects = attribute("respect-gpc") != "false" && (navigator.globalPrivacyControl || navigator.doNotTrack == "1");
  const waits = attribute("consent") == "wait" || objects;
  let allowed = !waits;
  // Who tries it in such a browser would look for a fault.
  if (able && objects)
    win.console.info("stx: this browser says Global Privacy Control or Do Not Track: nothing is kept before stx.consent(true)");

  // Cookies

  function read(name) {
    try {
      return ("; " + doc.cookie).split("; " + name + "=")[1].split(";")[0];
    } catch (e) {
      return "";
    }
  }

  // No seconds: until the browser is closed. Less than none: gone.
  function write(name, value, seconds, domain) {
    doc.cookie = name + "=" + value + "; path=/; SameSite=Lax" + (seconds ? "; max-age=" + seconds : "") +
      (location.protocol == "https:" ? "; Secure" : "") + (domain ? "; domain=" + domain : "");
  }

  // From the site's own word and the shortest name to this very host.
  const domains = () => {
    const labels = location.hostname.split(".");
    const names = labels.map((_, from) => labels.slice(from).join(".")).reverse().slice(1);
    return [attribute("cookie-domain"), ...names];
  };

  // The shortest domain that takes a cookie is the registrable one: browsers know the list of public suffixes.
  const widest = () => domains().find((domain) => {
    const value = "" + Math.random();
    write("stx_try", value, 9, domain);
    const taken = domain && read("stx_try") == value;
    write("stx_try", "", -1, domain);
    return taken;
  });

  function put(name, value, seconds, domain) {
    write(name, value, seconds, domain);
    // There is one of this host alone before it, or no domain was taken.
    if (read(name) != value) write(name, value, seconds);
    return read(name) == value;
  }

  // What is known

  let visitor;
  // What the cookies would hold, while they do not.
  let kept;
  const text = (value) => typeof value == "string" ? [...value].slice(0, 100).join("") : null;
  const partner = (given) => given && text(given.id) &&
    { id: text(given.id), name: text(given.name), first_name: text(given.first_name) };
  const referral = () => {
    const id = able && allowed ? kept ? kept.referral : read("stx_ref") : "";
    return VISIT.test(id) ? id : "";
  };
  const affiliate = () => {
    try {
      return referral() && partner(kept ? kept.affiliate : JSON.parse(decodeURIComponent(read("stx_aff")))) || null;
    } catch (e) {
      return null;
    }
  };

  // What is told

  // As text: a browser sends that to another site without asking it first.
  const tell = async (what, body) => fetch(new URL("affiliate/" + what, tag.src), {
    method: "POST", keepalive: true, body: JSON.stringify({ key, visitor, ...body }),
  });

  // The tokens in an address, by their weight. In `stx_ref` another domain hands a visit over.
  function linksIn(address) {
    const url = new URL(address, location.href), query = url.searchParams;
    const given = (name) => query.get(name.trim()) || "";
    return ["stx_ref", ...attribute("ref-params").split(","), "via", "ref"].map((name) => ({
      token: given(name), param: name.trim(), url: url.href.split("#")[0].slice(0, 2000),
      referrer: doc.referrer.slice(0, 2000), sub_id: given("sub_id").slice(0, 100),
    })).filter((link) => (link.param == "stx_ref" ? VISIT : TOKEN).test(link.token)).slice(0, 5);
  }

  async function capture() {
    try {
      // A page that is made in advance is a visit once somebody looks at it.
      if (doc.prerendering) await new Promise((go) => doc.addEventListener("prerenderingchange", go));
      visitor = read("stx_vid");
      if (!VISITOR.test(visitor)) {
        const bytes = win.crypto.getRandomValues(new Uint8Array(16));
        visitor = Array.from(bytes, (byte) => (byte + 256).toString(16).slice(1)).join("");
      }
      let links = linksIn(location.href);
      // A router may have changed the address meanwhile.
      if (!links[0]) links = linksIn((performance.getEntriesByType("navigation")[0] || stx).name || "");
      for (const link of links) {
        // What was handed over is good until the server says otherwise, should it say nothing at all.
        if (link.param == "stx_ref" && !referral()) kept = { referral: link.token };
        if (own) link.domain = widest();
        const answer = await tell("visits", link);
        if (answer.status == 200) return keep(await answer.json());
        if (answer.status != 204 || !allowed) return;
        kept = 0;
      }
    } catch (e) {
      // The page comes first.
    }
  }

  function keep(answer) {
    const id = "" + answer.referral;
    if (!allowed || !VISIT.test(id)) return;
    kept = { referral: id, affiliate: partner(answer.affiliate) };
    const seconds = Math.min((Date.parse(answer.expires_at) - Date.now()) / 1000, 400 * DAY_S) | 0;
    // Cookies of the server's live longer than those of a script: they are left alone.
    if (own && read("stx_ref") == id) return (kept = 0);
    const domain = widest();
    put("stx_vid", visitor, 396 * DAY_S, domain);
    put("stx_aff", encodeURIComponent(JSON.stringify(kept.affiliate)), seconds, domain);
    if (put("stx_ref", id, seconds, domain)) kept = 0;
  }

  // What the page sees

  // Settles when there is nothing left to wait for; never fails.
  let answered, work = able && (waits ? new Promise((done) => (answered = done)) : capture());

  // Of those whom no partner sent, nothing is told.
  const person = (what) => async (who) => {
    const email = ("" + ((who && who.email) || who)).trim();
    await work;
    if (referral() && email.length < 255 && /^\S+@\S+$/.test(email)) {
      await tell(what, { referral: referral(), email }).catch(() => 0);
    }
  };
  stx.referralSignup = person("signups");
  stx.identify = person("identify");

  stx.consent = (yes) => {
    if (!able || (yes === true && allowed)) return;
    allowed = yes === true;
    work = allowed && capture();
    if (!allowed) {
      kept = 0;
      for (const domain of ["", ...domains()]) {
        for (const name of ["ref", "aff", "vid"]) write("stx_" + name, "", -1, domain);
      }
    }
    if (answered) answered(work);
  };

  stx.ready = (then) => {
    const late = new Promise((done) => setTimeout(done, WAIT_MS));
    return Promise.race([work, late]).then(() => stx).then(then);
  };
  stx.ready.then = (yes, no) => stx.ready().then(yes, no);

  Object.defineProperties(stx, { referral: { get: referral }, affiliate: { get: affiliate } });
  delete stx.q;
  win.stx = stx;
  const replay = ([name, value]) => stx[name](value);
  if (calls) calls.splice(0).forEach(calls.push = replay);
})(window, document);
