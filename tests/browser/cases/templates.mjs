// The editor of templates in MJML: written, previewed while typing, mended by the line of an error, published, converted.
import assert from "node:assert/strict";
import { join } from "node:path";
import { open } from "./dashboard.mjs";

const source = (text) => `<mjml>
  <mj-body background-color="#eef2ff">
    <mj-section background-color="#ffffff">
      <mj-column>
        <mj-text font-size="20px">${text} {{name}}</mj-text>
        {{#if trial}}<mj-text>Your trial ends soon.</mj-text>{{/if}}
        <mj-button href="https://shop.example.com/?u={{user.id}}">Open the shop</mj-button>
      </mj-column>
    </mj-section>
  </mj-body>
</mjml>
`;

/** A picture in the directory SHOTS, for people to look at. */
const shot = (page, name) => process.env.SHOTS && page.screenshot({ path: join(process.env.SHOTS, `${name}.png`), fullPage: true });

const press = (page, name) => page.getByRole("button", { name, exact: true }).click();
const editor = (page) => page.locator("textarea[name=mjml]");

async function create(page, w, name) {
  await page.goto(w.program.url + "/dashboard/templates/new");
  await page.getByLabel("Name", { exact: true }).fill(name);
  await page.getByLabel(/^MJML:/).check();
  await shot(page, "mjml-new");
  await press(page, "Create and edit");
  await page.waitForURL("**/dashboard/templates/tpl_*");
  assert.match(await editor(page).inputValue(), /^<mjml>/);
}

const mail = (page) => page.frameLocator("iframe.mail").first();

/** Publishes, changes, compares and converts the template whose editor is shown. */
async function convert(page) {
  await press(page, "Save the draft");
  await page.getByText("The change was saved.").waitFor();
  await mail(page).getByText("Changed name_value").waitFor();
  await page.getByRole("link", { name: "View compiled HTML" }).click();
  const compiled = page.getByRole("group", { name: "Compiled HTML" });
  assert.match(await compiled.textContent(), /^<!doctype html>[^]*Changed \{\{name\}\}/);
  await shot(page, "mjml-compiled");
  await page.getByLabel("Remove the MJML source of the draft").check();
  await press(page, "Convert to HTML");
  await page.waitForURL(/\/dashboard\/templates\/tpl_\w+(\?.*)?$/);
  assert.match(await page.locator("textarea[name=html]").inputValue(), /^<!doctype html>/);
  assert.equal(await editor(page).count(), 0);
}

export const withServer = {
  async "a template in MJML is previewed while it is written"(w) {
    await open(w, { viewport: { width: 1280, height: 1000 } }, async (page) => {
      await create(page, w, "Typed");
      await editor(page).fill(source("Hello"));
      await mail(page).getByText("Open the shop").waitFor();
      await page.getByText(/^Compiled HTML: /).waitFor();
      await shot(page, "mjml-editor");
      await editor(page).fill(source("Hello").replace("<mj-button", "<mj-buton"));
      await page.getByText(/line 7, column 9: .*mj-buton.* is not an element of MJML/).first().waitFor();
      await shot(page, "mjml-error");
      await editor(page).fill(source("Changed"));
      await mail(page).getByText("Changed").waitFor();
      await convert(page);
    });
  },

  async "a template in MJML is written without JavaScript"(w) {
    await open(w, { javaScriptEnabled: false, viewport: { width: 320, height: 900 } }, async (page) => {
      await create(page, w, "By hand");
      await editor(page).fill(source("Hello").replace("</mj-column>", "</mj-colum>"));
      await press(page, "Preview without saving");
      await page.getByText(/line 8, column 7: /).first().waitFor();
      await editor(page).fill(source("Changed"));
      await convert(page);
    });
  },
};
