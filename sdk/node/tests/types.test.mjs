// The declarations: one file that must compile, with both module systems, and one that must not.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const compiler = fileURLToPath(new URL("../node_modules/typescript/bin/tsc", import.meta.url));
const folder = fileURLToPath(new URL("types", import.meta.url));

function compile(...options) {
  return new Promise((resolve) => {
    execFile(process.execPath, [compiler, ...options], { cwd: folder }, (_, output) => resolve(output.split("\n").filter((line) => line.includes("error TS"))));
  });
}

test("correct use compiles", async () => {
  assert.deepEqual(await compile("-p", "."), []);
  assert.deepEqual(await compile("-p", ".", "--module", "commonjs", "--moduleResolution", "bundler"), []);
});

test("wrong use does not", async () => {
  const options = ["--module", "nodenext", "--target", "es2022", "--strict", "--noEmit", "--skipLibCheck", "--ignoreConfig"];
  const errors = await compile(...options, "refused.ts");
  assert.deepEqual(errors.map((line) => line.replace(/\(.*/, "")), Array(4).fill("refused.ts"), errors.join("\n"));
});
