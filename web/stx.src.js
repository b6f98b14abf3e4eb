// The affiliate program's browser script. It records which partner's link a visitor followed, for the checkout.
//
//   ?via=ada ─► POST affiliate/visits ─► cookies stx_ref, stx_aff, stx_vid ─► stx.referral, stx.affiliate
//
//   <script async src="https://API/stx.js" data-key="pk_…"></script>
//
// web/minify builds web/stx.js, which is served, from this file. docs/STX.md documents its use.
//
// The server decides which tokens are valid, which of two visits counts, and for how long. Cookies are set only after
// its response. Input from outside (URL, cookies, responses) is accepted only in the expected form and length. The
// script inserts nothing into the page and throws no errors into it, and `ready` always settles.
(function (win, doc) {
  "use strict";
  const { location, navigator } = win, DAY_S = 86400, WAIT_MS = 3000;
  const VISIT = /^vis_[\w-]{1,60}$/, TOKEN = /^[\w-]{2,40}$/, VISITOR = /^[\w.-]{8,64}$/;
  // Calls that the page made to the stub before this script was loaded; see docs/STX.md.
  const existing = win.stx, calls = existing && Array.isArray(existing.q) ? existing.q : 0;
  // The script is loaded already: the page has two tags, or a router inserted the tag again.
  if (existing && typeof existing.ready == "function" && !calls) return;
  const stx = calls ? existing : {};

  // An image named `currentScript` would shadow the property, so only a script element is accepted.
  const scriptTag = (element) => element && element.tagName == "SCRIPT" && element.hasAttribute("data-key") && element;
  const tag = scriptTag(doc.currentScript) || scriptTag(doc.querySelector("script[data-key]"));
  const attribute = (name) => (tag && tag.getAttribute("data-" + name)) || "";
  const key = attribute("key");
  // The script is served below a path of the site itself, so the server can set the cookies.
  const sameSite = tag && tag.src.startsWith(location.origin + "/");
  // A page without an origin (a file, a sandboxed frame) has no cookies and belongs to no site.
  const enabled = key && win.origin != "null";
  // Global Privacy Control and Do Not Track count as consent that is not given yet, unless the site has chosen
  // otherwise.
  const privacySignal = attribute("respect-gpc") != "false" && (navigator.globalPrivacyControl || navigator.doNotTrack == "1");
  const awaitsConsent = attribute("consent") == "wait" || privacySignal;
  let consented = !awaitsConsent;
  // Explains to a developer with such a browser why nothing is recorded.
  if (enabled && privacySignal)
    win.console.info("stx: this browser sends Global Privacy Control or Do Not Track, so nothing is stored before stx.consent(true)");

  // Cookies

  function readCookie(name) {
    try {
      return ("; " + doc.cookie).split("; " + name + "=")[1].split(";")[0];
    } catch (e) {
      return "";
    }
  }

  // Without seconds: a session cookie. Negative seconds delete the cookie.
  function writeCookie(name, value, seconds, domain) {
    doc.cookie = name + "=" + value + "; path=/; SameSite=Lax" + (seconds ? "; max-age=" + seconds : "") +
      (location.protocol == "https:" ? "; Secure" : "") + (domain ? "; domain=" + domain : "");
  }

  // Candidates for the cookie domain: the site's setting, then from the shortest name to this host's.
  const domains = () => {
    const labels = location.hostname.split(".");
    const names = labels.map((_, from) => labels.slice(from).join(".")).reverse().slice(1);
    return [attribute("cookie-domain"), ...names];
  };

  // The shortest domain that accepts a cookie is the registrable one: browsers use the list of public suffixes.
  const cookieDomain = () => domains().find((domain) => {
    const value = "" + Math.random();
    writeCookie("stx_try", value, 9, domain);
    const accepted = domain && readCookie("stx_try") == value;
    writeCookie("stx_try", "", -1, domain);
    return accepted;
  });

  function storeCookie(name, value, seconds, domain) {
    writeCookie(name, value, seconds, domain);
    // A cookie of this host alone has precedence, or no domain was accepted.
    if (readCookie(name) != value) writeCookie(name, value, seconds);
    return readCookie(name) == value;
  }

  // State

  let visitor;
  // The visit, while it cannot be stored in cookies.
  let pendingVisit;
  const text = (value) => typeof value == "string" ? [...value].slice(0, 100).join("") : null;
  const partner = (value) => value && text(value.id) &&
    { id: text(value.id), name: text(value.name), first_name: text(value.first_name) };
  const referral = () => {
    const id = enabled && consented ? pendingVisit ? pendingVisit.referral : readCookie("stx_ref") : "";
    return VISIT.test(id) ? id : "";
  };
  const affiliate = () => {
    try {
      return referral() && partner(pendingVisit ? pendingVisit.affiliate : JSON.parse(decodeURIComponent(readCookie("stx_aff")))) || null;
    } catch (e) {
      return null;
    }
  };

  // Requests

  // Sent as text, because a browser sends that to another site without a preflight request.
  const send = async (path, body) => fetch(new URL("affiliate/" + path, tag.src), {
    method: "POST", keepalive: true, body: JSON.stringify({ key, visitor, ...body }),
  });

  // The tokens in a URL, by precedence. In `stx_ref` another domain passes a visit on.
  function findLinks(address) {
    const url = new URL(address, location.href), query = url.searchParams;
    const parameter = (name) => query.get(name.trim()) || "";
    return ["stx_ref", ...attribute("ref-params").split(","), "via", "ref"].map((name) => ({
      token: parameter(name), param: name.trim(), url: url.href.split("#")[0].slice(0, 2000),
      referrer: doc.referrer.slice(0, 2000), sub_id: parameter("sub_id").slice(0, 100),
    })).filter((link) => (link.param == "stx_ref" ? VISIT : TOKEN).test(link.token)).slice(0, 5);
  }

  async function capture() {
    try {
      // A prerendered page counts as a visit once it is shown.
      if (doc.prerendering) await new Promise((resolve) => doc.addEventListener("prerenderingchange", resolve));
      visitor = readCookie("stx_vid");
      if (!VISITOR.test(visitor)) {
        const bytes = win.crypto.getRandomValues(new Uint8Array(16));
        visitor = Array.from(bytes, (byte) => (byte + 256).toString(16).slice(1)).join("");
      }
      let links = findLinks(location.href);
      // A router may have changed the URL meanwhile.
      if (!links[0]) links = findLinks((performance.getEntriesByType("navigation")[0] || stx).name || "");
      for (const link of links) {
        // A visit that was passed on is valid until the server's response, even if there is none.
        if (link.param == "stx_ref" && !referral()) pendingVisit = { referral: link.token };
        if (sameSite) link.domain = cookieDomain();
        const response = await send("visits", link);
        if (response.status == 200) return storeVisit(await response.json());
        if (response.status != 204 || !consented) return;
        pendingVisit = 0;
      }
    } catch (e) {
      // Errors must not affect the page.
    }
  }

  function storeVisit(visit) {
    const id = "" + visit.referral;
    if (!consented || !VISIT.test(id)) return;
    pendingVisit = { referral: id, affiliate: partner(visit.affiliate) };
    const seconds = Math.min((Date.parse(visit.expires_at) - Date.now()) / 1000, 400 * DAY_S) | 0;
    // Cookies set by the server live longer than those of a script, so they are not replaced.
    if (sameSite && readCookie("stx_ref") == id) return (pendingVisit = 0);
    const domain = cookieDomain();
    storeCookie("stx_vid", visitor, 396 * DAY_S, domain);
    storeCookie("stx_aff", encodeURIComponent(JSON.stringify(pendingVisit.affiliate)), seconds, domain);
    if (storeCookie("stx_ref", id, seconds, domain)) pendingVisit = 0;
  }

  // Public interface

  // Settles when there is nothing left to wait for; never rejects.
  let resolveConsent, pending = enabled && (awaitsConsent ? new Promise((done) => (resolveConsent = done)) : capture());

  // Sends nothing about visitors whom no partner referred.
  const sendPerson = (path) => async (person) => {
    const email = ("" + ((person && person.email) || person)).trim();
    await pending;
    if (referral() && email.length < 255 && /^\S+@\S+$/.test(email)) {
      await send(path, { referral: referral(), email }).catch(() => 0);
    }
  };
  stx.referralSignup = sendPerson("signups");
  stx.identify = sendPerson("identify");

  stx.consent = (granted) => {
    if (!enabled || (granted === true && consented)) return;
    consented = granted === true;
    pending = consented && capture();
    if (!consented) {
      pendingVisit = 0;
      for (const domain of ["", ...domains()]) {
        for (const name of ["ref", "aff", "vid"]) writeCookie("stx_" + name, "", -1, domain);
      }
    }
    if (resolveConsent) resolveConsent(pending);
  };

  stx.ready = (callback) => {
    const timeout = new Promise((done) => setTimeout(done, WAIT_MS));
    return Promise.race([pending, timeout]).then(() => stx).then(callback);
  };
  stx.ready.then = (resolve, reject) => stx.ready().then(resolve, reject);

  Object.defineProperties(stx, { referral: { get: referral }, affiliate: { get: affiliate } });
  delete stx.q;
  win.stx = stx;
  const replayCall = ([name, value]) => stx[name](value);
  if (calls) calls.splice(0).forEach(calls.push = replayCall);
})(window, document);
