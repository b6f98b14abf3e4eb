// The script of the dashboard. Every page works without it; it adds what the page's attributes ask for:
//   time[datetime]           how long ago, and the local time as title
//   button[data-copy]        copies a text
//   form[data-swap=NAME]     filters: the answer's [data-fragment=NAME] replaces the page's
//   form[data-preview=NAME]  posts while the person types, with `preview`, and replaces [data-fragment=NAME]
//   button[data-press]       is pressed as soon as it is there: it posts the form into a frame
//   main[data-live=URL]      replaces all fragments when an event arrives on the stream at URL
//   ol[data-reorder=FORM]    dragging an entry submits the form with the fields `from` and `to`
//   button[data-palette]     opens the palette, as Ctrl-K does
//   main[data-location]      the address of the object that a form made: a reload shows it, and sends nothing again
// Leaving a page with text that was not sent asks first. A form that was sent after the session had ended is filled in
// again after sign-in.
"use strict";
(() => {
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const policy = window.trustedTypes?.createPolicy("dashboard", { createHTML: (text) => text });
  // Only answers of this server are parsed.
  const parse = (text) => new DOMParser().parseFromString(policy ? policy.createHTML(text) : text, "text/html");

  // Times
  const relative = new Intl.RelativeTimeFormat(undefined, { numeric: "auto", style: "short" });
  const local = new Intl.DateTimeFormat(undefined, { year: "numeric", month: "short", day: "numeric", hour: "numeric", minute: "2-digit", timeZoneName: "short" });
  const units = [["day", 86400], ["hour", 3600], ["minute", 60], ["second", 1]];
  function showTimes(within = document) {
    for (const element of all("time[datetime]", within)) {
      const time = new Date(element.dateTime);
      if (isNaN(time)) continue;
      const seconds = Math.round((time - Date.now()) / 1000);
      const [unit, size] = units.find(([, size]) => Math.abs(seconds) >= size) ?? units[3];
      element.textContent = Math.abs(seconds) < 7 * 86400 ? relative.format(Math.round(seconds / size), unit) : local.format(time);
      element.title = `${local.format(time)} (${element.dateTime})`;
    }
  }

  function prepare(within = document) {
    showTimes(within);
    for (const button of all("button[data-copy], button[data-palette]", within)) button.hidden = false;
    for (const button of all("button[data-press]", within)) {
      button.hidden = true;
      button.form?.requestSubmit(button);
    }
    for (const list of all("[data-reorder]", within)) for (const entry of list.children) entry.draggable = true;
  }

  // Unsaved text. Passwords and codes are neither kept nor asked about.
  const TEXTS = "textarea, input:is([type=text], [type=email], [type=url], [type=number], [type=datetime-local]):not([autocomplete=one-time-code])";
  const textsOf = (form) => [...form.elements].filter((control) => control.matches(TEXTS) && control.name);
  const formName = (form) => form.elements.form?.value;
  const user = document.body.dataset.user;
  const SENT = "postrider-sent";
  const isSignIn = (path) => /^\/auth\/|\/sign-in(\/|$)/.test(path);
  const isSigningIn = isSignIn(location.pathname);
  let isUnsaved = false;
  addEventListener("beforeunload", (event) => isUnsaved && event.preventDefault());
  /** Keeps what a form sends, for the case that it leads to the sign-in page. */
  function keepTexts(form) {
    isUnsaved = false;
    if (isSigningIn) return;
    const texts = textsOf(form).map(({ name, value }) => [name, value]);
    try {
      sessionStorage.setItem(SENT, JSON.stringify([user, location.pathname, formName(form), texts, form.elements.seen_version?.value]));
    } catch {
      // The browser stores nothing, or not so much.
    }
  }
  function restoreTexts() {
    if (isSigningIn) return;
    const [owner, path, name, texts, seen] = JSON.parse(sessionStorage.getItem(SENT)) ?? [];
    if (owner === user && path !== location.pathname) return;
    sessionStorage.removeItem(SENT);
    if (owner !== user || !document.referrer || !isSignIn(new URL(document.referrer).pathname)) return;
    const form = all("form[method=post]").find((form) => formName(form) === name);
    // The version that was changed, so that a change by someone else meanwhile is noticed.
    if (form?.elements.seen_version) form.elements.seen_version.value = seen;
    for (const [n, control] of (form ? textsOf(form) : []).entries()) {
      if (texts[n]?.[0] !== control.name || texts[n][1] === control.value) continue;
      control.value = texts[n][1];
      isUnsaved = true;
    }
  }

  // Fragments
  const isChanged = (control) => control.checked !== control.defaultChecked || control.value !== control.defaultValue;
  // The number of the latest request of each kind: an older answer does not replace a newer one.
  const latest = {};
  async function load(request, names) {
    const kind = names?.join() ?? "live";
    const number = (latest[kind] = (latest[kind] ?? 0) + 1);
    const response = await fetch(request);
    const type = response.headers.get("content-type") ?? "";
    if (number !== latest[kind] || !type.startsWith("text/html")) return;
    if (response.redirected && new URL(response.url).pathname.endsWith("/sign-in")) return isUnsaved || location.reload();
    const page = parse(await response.text());
    for (const old of all("[data-fragment]")) {
      const name = old.dataset.fragment;
      const fresh = page.querySelector(`[data-fragment="${name}"]`);
      if (!fresh || (names && !names.includes(name)) || old.isEqualNode(fresh)) continue;
      // A live update does not take away what a person is entering or has chosen.
      if (!names && (old.contains(document.activeElement) || all("input, textarea", old).some(isChanged))) continue;
      const open = all("details[open][id]", old).map((element) => element.id);
      const adopted = document.adoptNode(fresh);
      for (const id of open) adopted.querySelector(`#${CSS.escape(id)}`)?.setAttribute("open", "");
      old.replaceWith(adopted);
      prepare(adopted);
    }
  }
  const waiting = new WeakMap();
  function later(key, delay, action) {
    clearTimeout(waiting.get(key));
    waiting.set(key, setTimeout(action, delay));
  }
  function filter(form) {
    const fields = [...new FormData(form)].filter(([, value]) => value !== "");
    const query = new URLSearchParams(fields).toString();
    history.replaceState(null, "", form.action.split("?")[0] + (query && `?${query}`));
    load(location.href, [form.dataset.swap]).catch(() => form.submit());
  }
  // One request at a time: each answer has the version that the next request names.
  const previewing = new Map();
  async function preview(form) {
    if (previewing.has(form)) return previewing.set(form, true);
    previewing.set(form, false);
    await postPreview(form).catch(() => {});
    const isStale = previewing.get(form);
    previewing.delete(form);
    if (isStale) preview(form);
  }
  function postPreview(form) {
    const body = new FormData(form);
    body.set("preview", "1");
    const encoded = form.enctype === "multipart/form-data" ? body : new URLSearchParams(body);
    return load(new Request(form.action, { method: "POST", body: encoded }), [form.dataset.preview]);
  }
  document.addEventListener("input", ({ target }) => {
    const form = target.form;
    if (form?.dataset.swap) later(form, 250, () => filter(form));
    if (form?.dataset.preview) later(form, 400, () => preview(form));
    if (!isSigningIn && form?.method === "post" && target.matches(TEXTS)) isUnsaved = true;
  });
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.dataset.swap) {
      event.preventDefault();
      filter(form);
    } else if (form.method === "post" && !event.submitter?.formTarget) {
      keepTexts(form);
      // After the fields are collected, so that the button's own value is sent.
      setTimeout(() => all("button", form).forEach((button) => (button.disabled = true)));
    }
  });
  addEventListener("pageshow", () => all("form button").forEach((button) => (button.disabled = false)));
  document.addEventListener("click", async (event) => {
    const copy = event.target.closest("button[data-copy]");
    if (copy) {
      const label = copy.textContent;
      try {
        await navigator.clipboard.writeText(copy.dataset.copy);
        copy.textContent = "Copied";
      } catch {
        copy.textContent = "Not allowed";
      }
      setTimeout(() => (copy.textContent = label), 1500);
    }
    if (event.target.closest("button[data-palette]")) openPalette();
    for (const box of all("details.menu-box[open]")) if (!box.contains(event.target)) box.open = false;
    if (!event.target.closest(".top, .sidebar")) closeMenu();
  });

  // Navigation: the drawer of narrow screens closes, and the entry of the page is in sight.
  function closeMenu() {
    const menu = document.getElementById("menu");
    if (menu) menu.checked = false;
  }
  document.addEventListener("keydown", ({ key }) => key === "Escape" && closeMenu());
  document.querySelector(".sidebar [aria-current]")?.scrollIntoView({ block: "nearest" });

  // Live rows: one tab reads the stream and tells the others.
  const live = document.querySelector("main[data-live]");
  let isRefreshing = false;
  async function refresh() {
    if (!live || document.hidden || isRefreshing) return;
    isRefreshing = true;
    // Events that arrive meanwhile are part of the same answer.
    await new Promise((resume) => setTimeout(resume, 700));
    isRefreshing = false;
    load(location.href).catch(() => {});
  }
  const channel = window.BroadcastChannel && new BroadcastChannel("postrider-live");
  if (channel) channel.onmessage = refresh;
  async function follow(url) {
    for (let wait = 1; ; wait = Math.min(wait * 2, 60)) {
      try {
        const response = await fetch(url, { headers: { accept: "text/event-stream" } });
        if (response.status === 401 || response.status === 403) return;
        // Events before the stream, or while it was broken.
        if (response.ok) refresh();
        const reader = response.ok && response.body.pipeThrough(new TextDecoderStream()).getReader();
        for (let chunk; reader && !(chunk = await reader.read()).done; ) {
          wait = 1;
          if (!/^data:/m.test(chunk.value)) continue;
          refresh();
          channel?.postMessage("event");
        }
      } catch {
        // The connection broke: it is opened again.
      }
      await new Promise((resume) => setTimeout(resume, wait * 1000));
    }
  }
  if (live?.dataset.live) {
    // A page that is left at once opens no stream.
    const start = () => new Promise((resume) => setTimeout(resume, 1500)).then(() => follow(live.dataset.live));
    if (navigator.locks) navigator.locks.request("postrider-live", start);
    else start();
    document.addEventListener("visibilitychange", refresh);
  }

  // Palette
  const places = { msg: "emails", inb: "received", dom: "domains", sup: "suppressions", tpl: "templates", key: "api-keys", smtp: "smtp-credentials", whk: "webhooks", aut: "automations", aff: "affiliate/partners", ref: "affiliate/referrals", com: "affiliate/commissions", req: "logs" };
  let palette;
  function openPalette() {
    palette ??= buildPalette();
    palette.showModal();
    palette.querySelector("input").select();
  }
  function buildPalette() {
    const make = (name, properties) => Object.assign(document.createElement(name), properties);
    const dialog = make("dialog", { className: "palette-box" });
    dialog.setAttribute("aria-label", "Go to");
    const input = make("input", { type: "search", placeholder: "A page, an id, an address" });
    input.setAttribute("aria-label", "A page, an id, an address");
    const list = make("ul", {});
    const links = all("nav.sidebar a").map((link) => [link.textContent, link.href]);
    function show() {
      const text = input.value.trim();
      const found = links.filter(([title]) => title.toLowerCase().includes(text.toLowerCase()));
      const kind = places[/^([a-z]+)_\w+$/.exec(text)?.[1]];
      if (kind) found.unshift([`Open ${text}`, `/dashboard/${kind}/${encodeURIComponent(text)}`]);
      if (text.includes("@")) {
        found.unshift([`Emails to ${text}`, `/dashboard/emails?to=${encodeURIComponent(text)}`],
          [`Suppression of ${text}`, `/dashboard/suppressions?email=${encodeURIComponent(text)}`]);
      }
      list.replaceChildren(...found.slice(0, 12).map(([title, href]) => {
        const entry = make("li", {});
        entry.append(make("a", { href, textContent: title }));
        return entry;
      }));
      if (found.length === 0) list.append(make("li", { className: "soft", textContent: "Nothing found" }));
    }
    input.addEventListener("input", show);
    dialog.addEventListener("keydown", (event) => {
      const entries = all("a", list);
      const at = entries.indexOf(document.activeElement);
      if (event.key === "Enter" && at < 0) entries[0]?.click();
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      (entries[at + step] ?? input).focus();
    });
    dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
    dialog.append(input, list);
    document.body.append(dialog);
    show();
    return dialog;
  }
  document.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key === "k" && document.querySelector("nav.sidebar")) {
      event.preventDefault();
      openPalette();
    }
  });

  // Reordering
  let dragged;
  const entryOf = (event) => event.target.closest?.("[data-reorder] > *");
  document.addEventListener("dragstart", (event) => (dragged = entryOf(event)));
  document.addEventListener("dragover", (event) => {
    const over = entryOf(event);
    if (dragged && over?.parentElement === dragged.parentElement) event.preventDefault();
  });
  document.addEventListener("drop", (event) => {
    const over = entryOf(event);
    if (!dragged || !over || over === dragged || over.parentElement !== dragged.parentElement) return;
    event.preventDefault();
    const entries = [...over.parentElement.children];
    const form = document.getElementById(over.parentElement.dataset.reorder);
    form.elements.from.value = entries.indexOf(dragged);
    form.elements.to.value = entries.indexOf(over);
    form.requestSubmit();
  });

  const made = document.querySelector("main[data-location]");
  if (made) history.replaceState(null, "", made.dataset.location);
  try {
    restoreTexts();
  } catch {
    // The browser stores nothing.
  }
  prepare();
  setInterval(showTimes, 30000);
})();
