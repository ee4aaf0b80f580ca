// Builds src/dcgst/label/static/app.js and the list of licenses of everything in it.
import { build } from "esbuild";
import { readFileSync, writeFileSync, readdirSync } from "node:fs";

const out = "../src/dcgst/label/static";
const result = await build({
  entryPoints: ["src/main.js"], bundle: true, minify: true, format: "iife", target: "es2020",
  outfile: `${out}/app.js`, legalComments: "none", metafile: true,
});
const packages = new Set();
for (const path of Object.keys(result.metafile.inputs)) {
  const match = path.match(/node_modules\/((?:@[^/]+\/)?[^/]+)\//);
  if (match) packages.add(match[1]);
}
const parts = [...packages].sort().map(name => {
  const folder = `node_modules/${name}`, about = JSON.parse(readFileSync(`${folder}/package.json`));
  const file = readdirSync(folder).find(entry => /^licen[sc]e/i.test(entry));
  const text = file ? readFileSync(`${folder}/${file}`, "utf8").trim() : "";
  return `${name} ${about.version} (${about.license})\n\n${text}\n`;
});
writeFileSync(`${out}/licenses.txt`, parts.join("\n----\n\n"));
