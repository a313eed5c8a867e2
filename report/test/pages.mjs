// Writes the invented runs as pages into report/out, for looking at: npm run mock
import { mkdirSync, writeFileSync } from "node:fs";
import { bundle, here } from "./bundle.mjs";

const { CASES, fill } = await import(await bundle("fill.ts"));
mkdirSync(`${here}/../out`, { recursive: true });
for (const [name, make] of Object.entries(CASES)) {
  const page = fill(make());
  writeFileSync(`${here}/../out/${name}.html`, page);
  console.log(`report/out/${name}.html  ${page.length} bytes`);
}
