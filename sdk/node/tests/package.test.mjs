import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { lstatSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const folder = new URL("..", import.meta.url);
const isMissing = spawnSync("npm", ["--version"]).status !== 0;

/** All paths of `exports`, whatever their conditions. */
const targets = (exported) => (typeof exported === "string" ? [exported] : Object.values(exported).flatMap(targets));

test("npm packs what programs import, and nothing else", { skip: isMissing && "npm is missing" }, () => {
  // `--ignore-scripts`: the build is there, and its output would stand before the JSON.
  const [packed] = JSON.parse(execFileSync("npm", ["pack", "--dry-run", "--json", "--ignore-scripts"], { cwd: folder, encoding: "utf8" }));
  const files = packed.files.map(({ path }) => path);
  const manifest = JSON.parse(readFileSync(new URL("package.json", folder)));
  const wanted = [...targets(manifest.exports), manifest.main, manifest.module, manifest.types].map((path) => path.replace("./", ""));
  assert.deepEqual(wanted.filter((path) => !files.includes(path)), []);
  assert.deepEqual(files.filter((path) => !/^(dist\/(cjs|esm)\/.*|README\.md|LICENSE|package\.json)$/.test(path)), []);
});

test("the README's commands copy the package into a project, and npm keeps it", { skip: isMissing && "npm is missing" }, (t) => {
  const parent = mkdtempSync(join(tmpdir(), "postrider-install-"));
  t.after(() => rmSync(parent, { recursive: true }));
  const project = join(parent, "project");
  for (const path of ["project/other", "postrider/sdk"]) mkdirSync(join(parent, path), { recursive: true });
  symlinkSync(fileURLToPath(folder), join(parent, "postrider/sdk/node"));
  writeFileSync(join(project, "package.json"), "{}");
  writeFileSync(join(project, "other/package.json"), '{ "name": "other", "version": "1.0.0" }');
  const commands = readFileSync(new URL("README.md", folder), "utf8").match(/^npm (config|install) .*$/gm);
  // The build is there, and needs no registry.
  const env = { ...process.env, npm_config_ignore_scripts: "true", npm_config_offline: "true", npm_config_audit: "false" };
  for (const command of [...commands, "npm install ./other", "npm ci"]) {
    execFileSync("sh", ["-c", command], { cwd: project, env, stdio: "pipe" });
    if (command.startsWith("npm config")) continue;
    assert(!lstatSync(join(project, "node_modules/postrider")).isSymbolicLink(), command);
    assert(lstatSync(join(project, "node_modules/postrider/dist/esm/index.js")).isFile(), command);
  }
});
