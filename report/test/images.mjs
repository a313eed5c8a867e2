// The pictures of the report in the documentation: tlplab run quickstart --report out/quickstart.html, then node test/images.mjs ../out/quickstart.html
import { resolve } from "node:path";
import { here, launch } from "./bundle.mjs";

const to = (name) => `${here}/../../docs/images/${name}.png`;
const browser = await launch();
const open = async (width, height) => {
  const page = await browser.newPage({ viewport: { width, height }, colorScheme: "light" });
  await page.goto(`file://${resolve(process.argv[2])}`);
  await page.waitForTimeout(300);
  return page;
};
const whole = await open(1440, 1500);
await whole.screenshot({ path: to("report") });
// The bar that stays in sight would cover a part.
const parts = await open(1280, 1600);
await parts.addStyleTag({ content: ".filterbar { position: static !important; }" });
for (const [part, name] of [["ladder", "report-ladder"], ["latency", "report-latency"]]) {
  await parts.locator(`#${part}`).screenshot({ path: to(name) });
}
await browser.close();
