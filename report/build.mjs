// Builds the pages: report/dist/report.html, which shows a run, and python/tlplab/study/study.html, which shows a study. Each has its script and
// style inside, and one placeholder for what it shows. What they are built from is hashed by check_fresh.py, which needs no Node.
import { build } from "esbuild";
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const PLACEHOLDER = "/*TLPLAB_RESULT*/";
const LIMIT = 400_000;

async function page(entry, file, packages) {
  const bundle = await build({
    absWorkingDir: here,
    entryPoints: [entry],
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
  const licences = packages.map((name) => {
    const { version, license } = JSON.parse(readFileSync(join(here, "node_modules", name, "package.json"), "utf8"));
    return `${name} ${version} (${license})`;
  });
  const page = readFileSync(join(here, "src/page.html"), "utf8")
    .replace("<!--LICENCES-->", () => `<!-- Contains ${licences.join(", ")}. -->`)
    .replace("/*STYLE*/", () => output(".css"))
    .replace("/*SCRIPT*/", () => script);
  if (page.split(PLACEHOLDER).length !== 2) throw new Error(`${file} must hold ${PLACEHOLDER} exactly once`);
  if (page.length > LIMIT) throw new Error(`${file} has ${page.length} bytes, more than ${LIMIT}`);
  mkdirSync(dirname(join(here, "..", file)), { recursive: true });
  writeFileSync(join(here, "..", file), page);
  console.log(`${file}: ${Buffer.byteLength(page)} bytes`);
}

await page("src/main.tsx", "report/dist/report.html", ["preact", "uplot", "d3-hierarchy", "@tanstack/virtual-core"]);
await page("src/study/main.tsx", "python/tlplab/study/study.html", ["preact", "uplot", "@tanstack/virtual-core"]);
execFileSync("python3", [join(here, "check_fresh.py"), "--write"], { stdio: "inherit" });
