// npm test [-- FILE.test.ts…]: the figures, then the pages in Chromium. Without Chromium the second part is skipped, and says so.
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { bundle, here } from "./bundle.mjs";

const files = [];
const wanted = process.argv.slice(2);
const all = ["figures.test.ts", "study.test.ts", "page.test.ts", "study_page.test.ts"];
for (const name of all.filter((name) => wanted.length === 0 || wanted.includes(name))) {
  await bundle(name);
  files.push(join(here, "../out/test", name.replace(".ts", ".mjs")));
}
const run = spawnSync(process.execPath, ["--test", "--test-reporter=spec", ...files], {
  stdio: "inherit", cwd: join(here, ".."), env: { ...process.env, REPORT_ROOM: join(here, "..") },
});
process.exit(run.status ?? 1);
