// Pictures of the invented runs at desktop and phone width, light and dark, into report/out: node test/shots.mjs [case…]
import { here, launch } from "./bundle.mjs";

const wanted = process.argv.slice(2);
const browser = await launch();
for (const name of wanted.length ? wanted : ["quickstart"]) {
  for (const width of [1440, 390]) {
    for (const colorScheme of ["light", "dark"]) {
      const page = await browser.newPage({ viewport: { width, height: width === 390 ? 844 : 1000 }, deviceScaleFactor: width === 390 ? 2 : 1, colorScheme });
      page.on("pageerror", (e) => console.log(`${name} ${width}: ${e.message}`));
      page.on("console", (m) => ["error", "warning"].includes(m.type()) && console.log(`${name} ${width}: ${m.text()}`));
      await page.goto(`file://${here}/../out/${name}.html`);
      await page.waitForTimeout(300);
      const height = await page.evaluate(() => document.documentElement.scrollHeight);
      const slice = width === 390 ? 1500 : 1300;
      for (let y = 0, n = 1; y < height; y += slice, n++) {
        const clip = { x: 0, y, width, height: Math.min(slice, height - y) };
        await page.screenshot({ path: `${here}/../out/${name}-${width}-${colorScheme}-${n}.png`, fullPage: true, clip });
      }
      await page.close();
    }
  }
}
await browser.close();
