// The audit of a page: axe-core for accessibility, html-validate for the markup.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

/** Reads the source of axe-core, which tests/browser/run installs. */
export const axe = (modules) => readFileSync(createRequire(join(modules, "x.js")).resolve("axe-core/axe.min.js"), "utf8");

export const validator = (modules) => {
  const { HtmlValidate } = createRequire(join(modules, "x.js"))("html-validate");
  return new HtmlValidate({ extends: ["html-validate:recommended"], rules: RULES });
};

// Differences of style, not errors.
const RULES = {
  "attribute-boolean-style": "off",
  "doctype-style": "off",
  "long-title": "off",
  "no-trailing-whitespace": "off",
  "void-style": "off",
  "no-implicit-button-type": "off",
  "attribute-empty-style": "off",
  "require-sri": "off",
  "tel-non-breaking": "off",
  "form-dup-name": ["error", { shared: ["radio", "checkbox", "button", "reset", "submit"] }],
};

/** The violations that axe-core finds on the page that is shown. */
export async function violations(page, source) {
  await page.evaluate(source);
  const found = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  return found.violations.map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map(({ target, html }) => `${target.join(" ")} ${html.slice(0, 120)}`)}`);
}

/**
 * Returns a function that audits the page that is shown, and returns its problems. With `--brief` it audits every third
 * page: the narrow and the wide case audit different ones. The markup is the same at every width, so one case
 * validates it (`withMarkup`).
 */
export function auditor(w, width, withMarkup) {
  const [source, html] = [axe(w.modules), withMarkup ? validator(w.modules) : undefined];
  let number = width < 500 ? 1 : 0;
  return async (page, response) => {
    if (number++ % (w.isBrief ? 3 : 1) !== 0) return [];
    const report = await html?.validateString(await response.text());
    const errors = (report?.results ?? []).flatMap(({ messages }) => messages.map(({ ruleId, message }) => `${ruleId}: ${message}`));
    return [...new Set(errors)].slice(0, 5).concat(await violations(page, source));
  };
}
