// What the scripts of this folder share.
import { build } from "esbuild";
import { chromium } from "playwright-core";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

export const here = dirname(fileURLToPath(import.meta.url));

/** Compiles one TypeScript file of this folder, with what it imports, into report/out, and returns its address. */
export async function bundle(name) {
  const outfile = join(here, "../out/test", name.replace(/\.tsx?$/, ".mjs"));
  await build({
    absWorkingDir: here, entryPoints: [name], outfile, bundle: true, format: "esm", platform: "node", packages: "external",
    jsx: "automatic", jsxImportSource: "preact", sourcemap: "inline", logLevel: "error",
  });
  return pathToFileURL(outfile).href;
}

/** A Chromium that keeps to itself. */
export const launch = () =>
  chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run"],
  });
