// Compiles src to dist/esm and dist/cjs.
import { execFileSync } from "node:child_process";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

process.chdir(dirname(fileURLToPath(import.meta.url)));
const require = createRequire(import.meta.url);
const compiler = join(dirname(require.resolve("typescript/package.json")), "bin/tsc");
rmSync("dist", { recursive: true, force: true });
for (const options of [[], ["--module", "commonjs", "--moduleResolution", "bundler", "--verbatimModuleSyntax", "false", "--outDir", "dist/cjs"]]) {
  execFileSync(process.execPath, [compiler, "-p", ".", ...options], { stdio: "inherit" });
}
mkdirSync("dist/cjs", { recursive: true });
writeFileSync("dist/cjs/package.json", '{"type": "commonjs"}\n');
