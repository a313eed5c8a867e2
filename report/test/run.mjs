// npm test: the figures, then the page in Chromium. Without Chromium the second part is skipped, and says so.
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { bundle, here } from "./bundle.mjs";

const files = [];
for (const name of ["figures.test.ts", "page.test.ts"]) {
  await bundle(name);
  files.push(join(here, "../out/test", name.replace(".ts", ".mjs")));
}
const run = spawnSync(process.execPath, ["--test", "--test-reporter=spec", ...files], {
  stdio: "inherit", cwd: join(here, ".."), env: { ...process.env, REPORT_ROOM: join(here, "..") },
});
process.exit(run.status ?? 1);
