import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { test } from "node:test";

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
