// Reports visits: <script async src="https://API/visits.js?site=acct_..."></script>
// Sets the first-party cookies stx_vid (a random visitor id, 13 months) and rnl_ad (identifiers of clicks on
// advertisements, 90 days). Respects Global Privacy Control and Do Not Track: then it does nothing at all.
// data-domain="example.com" on the script tag shares the cookies with subdomains.
(function () {
  "use strict";
  var w = window, d = document, n = navigator, me = d.currentScript;
  if (!me || n.webdriver || n.globalPrivacyControl || n.doNotTrack === "1" || w.doNotTrack === "1") return;
  var src, page;
  try { src = new URL(me.src); page = new URL(w.location.href); } catch (e) { return; }
  var site = src.searchParams.get("site");
  if (!site) return;
  var domain = me.getAttribute("data-domain"), day = 86400;

  function get(name) {
    var found = ("; " + d.cookie).split("; " + name + "=")[1];
    return found ? found.split(";")[0] : "";
  }
  function set(name, value, seconds) {
    d.cookie = name + "=" + value + "; path=/; max-age=" + seconds + "; SameSite=Lax" +
      (page.protocol === "https:" ? "; Secure" : "") + (domain ? "; domain=" + domain : "");
  }

  var vid = get("stx_vid"), fresh = !/^[A-Za-z0-9._-]{8,64}$/.test(vid);
  if (fresh) {
    vid = "";
    var bytes = w.crypto.getRandomValues(new Uint8Array(16));
    for (var i = 0; i < bytes.length; i++) vid += (bytes[i] + 256).toString(16).slice(1);
  }
  set("stx_vid", vid, 396 * day);

  var ad = {}, clicked = false;
  ["gclid", "gbraid", "wbraid"].forEach(function (key) {
    var value = page.searchParams.get(key);
    if (value && value.length <= 512) { ad[key] = value; clicked = true; }
  });
  if (clicked) {
    ad.t = Math.floor(Date.now() / 1000);
    set("rnl_ad", encodeURIComponent(JSON.stringify(ad)), 90 * day);
  }

  // One visit for each tab, and one for each campaign that leads here.
  var told = false;
  try {
    told = w.sessionStorage.getItem("stx_told") === "1";
    w.sessionStorage.setItem("stx_told", "1");
  } catch (e) { /* no storage: every page is a visit */ }
  if (told && !fresh && !clicked && !page.searchParams.get("utm_source")) return;

  var body = JSON.stringify({
    site: site, visitor_id: vid,
    url: page.href.split("#")[0].slice(0, 2000), referrer: (d.referrer || "").slice(0, 2000)
  });
  var to = src.origin + src.pathname.replace(/visits\.js$/, "visits");
  if (w.fetch) {
    w.fetch(to, { method: "POST", body: body, mode: "no-cors", credentials: "omit", keepalive: true })
      .catch(function () { /* the page comes first */ });
  } else if (n.sendBeacon) {
    n.sendBeacon(to, body);
  }
})();
