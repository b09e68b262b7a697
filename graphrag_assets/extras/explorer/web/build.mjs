// Bundles src/ into ../static/explorer.js and explorer.css; `node build.mjs FOLDER` into another folder.
// The licenses of what is bundled stand at the head of the script.

import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const target = process.argv[2] ?? join(here, "..", "static");

const result = await build({
  absWorkingDir: here,
  entryPoints: { explorer: "src/main.js" },
  outdir: target,
  bundle: true,
  minify: true,
  format: "iife",
  target: ["chrome111", "firefox115", "safari16.4"],
  legalComments: "none",
  metafile: true,
  write: false,
});

const packages = [
  ...new Set(
    Object.values(result.metafile.outputs)
      .flatMap((output) => Object.entries(output.inputs))
      .filter(([, { bytesInOutput }]) => bytesInOutput > 0)
      .map(([path]) => path.match(/^node_modules\/((?:@[^/]+\/)?[^/]+)/)?.[1])
      .filter(Boolean),
  ),
].sort();

const licenses = packages.map((name) => {
  const folder = join(here, "node_modules", name);
  const { version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
  return `${name} ${version}, ${license}\n\n${readFileSync(join(folder, file), "utf8").trim()}`;
});

// What the bundle was made from, so that a test can tell a bundle that was not rebuilt.
const sources = createHash("sha256");
for (const file of ["package-lock.json", "build.mjs", ...readdirSync(join(here, "src")).sort().map((name) => `src/${name}`)]) {
  sources.update(readFileSync(join(here, file)));
}
const banner = `/*! sources ${sources.digest("hex")}\n\nThis file contains:\n\n${licenses.join("\n\n----\n\n").replaceAll("*/", "* /")}\n*/\n`;

for (const { path, text } of result.outputFiles) {
  writeFileSync(join(target, path.split("/").at(-1)), path.endsWith(".js") ? banner + text : text);
}
