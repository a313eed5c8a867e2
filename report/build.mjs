// Builds report/dist/report.html: the page with its script and style inside, and one placeholder for the result.
// What it is built from is hashed by check_fresh.py, which needs no Node.
import { build } from "esbuild";
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const PLACEHOLDER = "/*TLPLAB_RESULT*/";
const LIMIT = 400_000;

const bundle = await build({
  absWorkingDir: here,
  entryPoints: ["src/main.tsx"],
  bundle: true,
  minify: true,
  write: false,
  outdir: "out",
  format: "iife",
  target: ["es2022", "chrome111", "firefox113", "safari16.4"],
  charset: "utf8",
  legalComments: "none",
  jsx: "automatic",
  jsxImportSource: "preact",
});
const output = (end) => bundle.outputFiles.find((f) => f.path.endsWith(end)).text.trim();
const script = output(".js").replaceAll("</script", "<\\/script");

const licences = ["preact", "uplot", "d3-hierarchy", "@tanstack/virtual-core"].map((name) => {
  const { version, license } = JSON.parse(readFileSync(join(here, "node_modules", name, "package.json"), "utf8"));
  return `${name} ${version} (${license})`;
});
const page = readFileSync(join(here, "src/page.html"), "utf8")
  .replace("<!--LICENCES-->", () => `<!-- Contains ${licences.join(", ")}. -->`)
  .replace("/*STYLE*/", () => output(".css"))
  .replace("/*SCRIPT*/", () => script);

if (page.split(PLACEHOLDER).length !== 2) throw new Error(`the page must hold ${PLACEHOLDER} exactly once`);
if (page.length > LIMIT) throw new Error(`the page has ${page.length} bytes, more than ${LIMIT}`);
mkdirSync(join(here, "dist"), { recursive: true });
writeFileSync(join(here, "dist/report.html"), page);
execFileSync("python3", [join(here, "check_fresh.py"), "--write"], { stdio: "inherit" });
console.log(`report/dist/report.html: ${Buffer.byteLength(page)} bytes`);
