// Adds copy buttons, the remembered language, the current section and a filter. Pages work without it.
(() => {
  "use strict";
  const STORED = "postrider-language";
  const stored = (value) => {
    try {
      return value ? localStorage.setItem(STORED, value) : localStorage.getItem(STORED);
    } catch {
      return null; // storage is blocked
    }
  };
  const language = stored();
  for (const choice of document.querySelectorAll("input[name=language]")) {
    if (choice.value === language) choice.checked = true;
    choice.addEventListener("change", () => stored(choice.value));
  }

  const make = (name, className, text) => Object.assign(document.createElement(name), { className, textContent: text });

  function copyButtons() {
    for (const figure of document.querySelectorAll(".code")) {
      const code = figure.querySelector("pre");
      const button = Object.assign(make("button", "copy", "Copy"), { type: "button" });
      button.append(make("span", "hidden", " " + code.getAttribute("aria-label")));
      button.addEventListener("click", async () => {
        let told = "Copied";
        try {
          await navigator.clipboard.writeText(code.textContent);
        } catch {
          // Without https there is no clipboard: select the code for the keyboard.
          getSelection().selectAllChildren(code);
          told = "Selected";
        }
        button.firstChild.data = told;
        setTimeout(() => (button.firstChild.data = "Copy"), 1500);
      });
      figure.querySelector("figcaption").append(button);
    }
  }

  function currentSection() {
    const nav = document.querySelector("nav");
    const page = nav.querySelector("[aria-current=page]");
    if (page) nav.scrollTop = page.offsetTop - nav.clientHeight / 3;
    const links = new Map([...nav.querySelectorAll(".sections a")].map((link) => [link.hash.slice(1), link]));
    const watch = new IntersectionObserver(
      (seen) => {
        const first = seen.find((one) => one.isIntersecting);
        if (!first) return;
        for (const [id, link] of links) link.classList.toggle("here", id === first.target.id);
      },
      { rootMargin: "-20% 0px -70% 0px" },
    );
    for (const section of document.querySelectorAll("main section")) watch.observe(section);
    nav.addEventListener("click", (event) => {
      if (event.target.closest("a")) document.getElementById("menu").checked = false;
    });
  }

  function filter() {
    if (document.body.dataset.page !== "operations") return;
    const input = Object.assign(make("input", "filter", ""), { type: "search", placeholder: "Filter operations" });
    input.setAttribute("aria-label", "Filter operations");
    document.querySelector(".title").append(input);
    input.addEventListener("input", () => {
      const words = input.value.toLowerCase().split(/\s+/);
      for (const section of document.querySelectorAll("main section")) {
        let shown = 0;
        for (const row of section.querySelectorAll("tbody tr")) {
          const text = row.textContent.toLowerCase();
          row.hidden = !words.every((word) => text.includes(word));
          shown += !row.hidden;
        }
        section.hidden = shown === 0;
      }
    });
  }

  const enhance = () => [copyButtons, currentSection, filter].forEach((one) => one());
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", enhance);
  else enhance();
})();
