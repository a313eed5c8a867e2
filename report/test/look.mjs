// Pictures of the page in use, into report/out: a link chosen, a range chosen, a tooltip, the ladder in the middle.
import { here, launch } from "./bundle.mjs";
const browser = await launch();
for (const width of [1440, 390]) {
  const page = await browser.newPage({ viewport: { width, height: width === 390 ? 844 : 1000 }, deviceScaleFactor: width === 390 ? 2 : 1 });
  await page.goto(`file://${here}/../out/reads.html`);
  const shot = (n) => page.screenshot({ path: `${here}/../out/look-${width}-${n}.png` });
  await page.locator('button.link[data-link="ssd"]').click();
  await page.waitForTimeout(200);
  await page.locator('button.link[data-link="ssd"]').hover();
  await page.waitForTimeout(100);
  await shot("link");
  await page.locator("#throughput .u-over").first().scrollIntoViewIfNeeded();
  const box = await page.locator("#throughput .u-over").first().boundingBox();
  await page.mouse.move(box.x + box.width * 0.5, box.y + 60);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.8, box.y + 60, { steps: 5 });
  await shot("dragging");
  await page.mouse.up();
  await page.waitForTimeout(200);
  await shot("range");
  await page.locator("#latency").scrollIntoViewIfNeeded();
  await page.evaluate(() => document.querySelector("#latency").scrollIntoView());
  await page.waitForTimeout(200);
  await shot("latency");
  for (const b of await page.locator(".chip button").all()) await page.locator(".chip button").first().click();
  await page.evaluate(() => document.querySelector("#ladder").scrollIntoView());
  await page.locator(".scroller").focus();
  for (let i = 0; i < 40; i++) await page.keyboard.press("ArrowDown");
  await page.keyboard.press("c");
  await page.waitForTimeout(300);
  await shot("ladder");
  await page.close();
}
await browser.close();
