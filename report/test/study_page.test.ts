/** The page of a study in Chromium: pictures, filters, the table, a point and its report; at desk and phone width, from a file, offline. */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { chromium, type Browser, type Page } from "playwright-core";
import { fillStudy, STUDIES } from "./study_cases";

const CHROMIUM = process.env["CHROMIUM"] ?? "/usr/bin/chromium";
const ARGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run"];
const skip = existsSync(CHROMIUM) ? false : `no Chromium at ${CHROMIUM}; set CHROMIUM to its path`;
const OUT = join(process.env["REPORT_ROOM"]!, "out/test/pages");

describe("the page of a study", { skip }, () => {
  let browser: Browser;
  before(async () => {
    mkdirSync(OUT, { recursive: true });
    for (const [name, make] of Object.entries(STUDIES)) writeFileSync(join(OUT, `study-${name}.html`), fillStudy(make()));
    browser = await chromium.launch({ executablePath: CHROMIUM, args: ARGS });
  });
  after(() => browser.close());

  /** Opens a study; the test fails on any error, warning or network request of the page. */
  async function open(name: string, width: number, run: (page: Page) => Promise<void>, hash = ""): Promise<void> {
    const context = await browser.newContext({ viewport: { width, height: width < 500 ? 844 : 1000 }, hasTouch: width < 500 });
    const page = await context.newPage();
    const wrong: string[] = [];
    page.on("pageerror", (e) => wrong.push(e.message));
    page.on("console", (m) => ["error", "warning"].includes(m.type()) && wrong.push(m.text()));
    page.on("request", (r) => /^(file|blob):/.test(r.url()) || wrong.push(`request to ${r.url()}`));
    await page.goto(`file://${join(OUT, `study-${name}.html`)}${hash}`);
    await page.waitForSelector("h1");
    await run(page);
    assert.deepEqual(wrong, []);
    await context.close();
  }

  for (const name of Object.keys(STUDIES)) {
    for (const width of [1440, 390]) {
      test(`${name} at ${width}: every picture is there, nothing sticks out sideways`, () =>
        open(name, width, async (page) => {
          for (const kind of ["Lines", "Map", "Front"]) {
            const button = page.getByRole("radio", { name: kind });
            if ((await button.count()) === 0 || (await button.isDisabled())) continue;
            await button.click();
            assert.ok((await page.locator("#picture canvas").count()) > 0 || (await page.locator("#picture .empty").count()) === 1);
            const [inner, scroll] = await page.evaluate(() => [innerWidth, document.documentElement.scrollWidth]);
            assert.ok(scroll! <= inner!, `${kind}: ${scroll} px wide in a window of ${inner}`);
          }
        }));
    }
  }

  test("the finding stands on top, as text; one that does not hold is said to, and what was changed is told", async () => {
    await open("uplinks", 1440, async (page) => {
      assert.equal(await page.locator("h1").textContent(), "Uplinks say that it is <b>enough</b>.");
      assert.match((await page.locator(".eyebrow").textContent())!, /60 points, 140 runs.*left out: small \(2\)/);
    });
    await open("none", 1440, async (page) => assert.match((await page.locator(".headline .warn").textContent())!, /does not hold/));
    await open("sizes", 1440, async (page) => assert.match((await page.locator(".headline").textContent())!, /Sizes.*only the figures that the study names are here.*Changed from the study file: --set stop=60us/s));
  });

  /** The colours in a picture, by how many pixels have them. */
  const colours = (page: Page) =>
    page.locator("#picture canvas").first().evaluate((canvas: HTMLCanvasElement) => {
      const { data } = canvas.getContext("2d")!.getImageData(0, 0, canvas.width, canvas.height);
      const found = new Map<string, number>();
      for (let i = 0; i < data.length; i += 4) if (data[i + 3]! > 200) found.set(`${data[i]},${data[i + 1]},${data[i + 2]}`, (found.get(`${data[i]},${data[i + 1]},${data[i + 2]}`) ?? 0) + 1);
      return Object.fromEntries([...found].filter(([, n]) => n > 60));
    });

  test("lines have the colours of the legend, and a filter takes lines away", () =>
    open("uplinks", 1440, async (page) => {
      const legend = page.locator("#picture .legend li:not(.quiet)");
      assert.deepEqual((await legend.allTextContents()).map((t) => t.replace(/\s/g, " ")), ["5 Gb/s", "10 Gb/s", "20 Gb/s", "40 Gb/s"]);
      const [first, last] = ["0,103,168", "184,87,143"];
      const before = await colours(page);
      assert.ok(before[first]! > 60 && before[last]! > 60, JSON.stringify(before));
      await page.locator(".filters").getByRole("button", { name: /^5\sGb\/s/ }).click();
      const after = await colours(page);
      assert.ok(after[first]! > 60 && after[last] === undefined, JSON.stringify(after));
      assert.match((await page.locator("#picture .hint").textContent())!, /^15 of 60 points/);
      assert.match((await page.locator("#table .hint").textContent())!, /^15 points/);
      await page.getByRole("button", { name: "Show all points" }).click();
      assert.deepEqual(await colours(page), before);
    }));

  test("hovering tells all of a point, a click shows every figure and the command of its report", () =>
    open("uplinks", 1440, async (page) => {
      await page.locator("#picture .chart").first().focus();
      await page.waitForTimeout(150); // scrolling hides tooltips
      await page.keyboard.press("ArrowRight");
      const told = (await page.locator(".tip").textContent())!.replace(/\s/g, " ");
      assert.match(told, /Point 0 mean of 3 runs.*uplinkgen4 x4.*rate5 Gb\/s.*tags8.*throughput5\.2 Gb\/s.*nic\.latency\.p99/);
      await page.keyboard.press("Escape");
      const box = (await page.locator("#picture .u-over").first().boundingBox())!;
      let y = box.y + box.height;
      while ((await page.locator(".tip").count()) === 0 && y > box.y) await page.mouse.move(box.x + 14, (y -= 15));
      assert.match((await page.locator(".tip").textContent())!, /Point \d+/);
      await page.mouse.click(box.x + 14, y);
      const view = page.locator("#point");
      assert.match((await view.textContent())!, /Point \d+.*throughput.*lanes/s);
      assert.match((await view.locator("pre").textContent())!, /^tlplab run one\.toml .*--set 'uplink="gen4 x4"'.*--seed 1 --report point-\d+\.html$/);
      await view.getByLabel("Find a figure").fill("p99 nic");
      assert.deepEqual(await view.locator(".figures dt").allTextContents(), ["nic.latency.p99"]);
      assert.match(page.url(), /#point=\d+/);
      await page.getByRole("button", { name: "Close" }).click();
      assert.equal(await view.count(), 0);
    }));

  test("the table sorts, takes figures, and shows what is in sight of many", () =>
    open("many", 1440, async (page) => {
      const column = async (n: number) => (await page.locator(`#table tbody tr:not([aria-hidden]) :is(td,th):nth-child(${n})`).allTextContents()).map((t) => parseFloat(t));
      assert.deepEqual((await column(1)).slice(0, 3), [0, 1, 2]);
      await page.locator("#table thead").getByRole("button", { name: "nic.latency.p99", exact: true }).click();
      const sorted = await page.locator("#table tbody tr:not([aria-hidden]) td:nth-child(6)").allTextContents();
      assert.equal(await page.locator('#table th[aria-sort="descending"]').count(), 1);
      const values = sorted.map((t) => parseFloat(t) * (t.includes("µs") ? 1000 : 1));
      assert.deepEqual(values, [...values].sort((a, b) => b - a));
      const rows = await page.locator("#table tbody tr").count();
      assert.ok(rows > 10 && rows < 60, `${rows} of 10000 are made`);
      await page.getByLabel("Add a figure").selectOption({ label: "lanes" });
      assert.equal(await page.locator("#table thead th").count(), 7);
      await page.locator("#table tbody tr").nth(2).click();
      assert.equal(await page.locator("#point").count(), 1);
    }));

  test("ten thousand points take less than two seconds of the processor to open, and pictures less than one to change", async () => {
    const page = await browser.newPage({ viewport: { width: 1440, height: 1000 } });
    const client = await page.context().newCDPSession(page);
    // Of the page's thread alone: what else the machine does is no matter.
    await client.send("Performance.enable", { timeDomain: "threadTicks" });
    const spent = async () => (await client.send("Performance.getMetrics")).metrics.find((m) => m.name === "TaskDuration")!.value;
    let before = await spent();
    const took = async (what: string, most: number) => {
      await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(done))));
      const now = await spent();
      assert.ok(now - before > 0.001 && now - before < most, `${what}: ${now - before} s`);
      before = now;
    };
    await page.goto(`file://${join(OUT, "study-many.html")}`);
    await page.waitForSelector("#picture .u-over");
    await took("opening", 2);
    for (const kind of ["Front", "Map", "Lines"]) {
      await page.getByRole("radio", { name: kind }).click();
      await took(kind, 1);
    }
    await page.close();
  });

  test("a view is passed on by its address", () =>
    open("uplinks", 1440, async (page) => {
      assert.equal(await page.getByRole("radio", { name: "Front" }).getAttribute("aria-checked"), "true");
      assert.match((await page.locator("#picture").textContent())!, /throughput against lanes.*less is better/s);
      assert.equal(await page.locator("#point h2").textContent(), "Point 7");
      await page.getByRole("radio", { name: "Map" }).click();
      assert.match(page.url(), /view=map/);
    }, "#view=front&across=lanes&xMore=false&point=7"));

  test("a dense axis is a line without marks, and a range filters it", () =>
    open("sizes", 1440, async (page) => {
      const { width } = (await page.locator("#picture .u-over").boundingBox())!;
      assert.ok(width > 900);
      await page.getByLabel("From, size").fill("200");
      assert.match((await page.locator("#picture .hint").textContent())!, /^175 of 375 points/);
    }));

  test("what was refused and what failed is told with its message", async () => {
    await open("uplinks", 1440, async (page) => {
      assert.match((await page.locator("#trouble").textContent())!, /20 points refused: switch\.sw0\.link: unsupported generation "gen9"/);
      await page.locator("#trouble").getByRole("button").click();
      assert.match((await page.locator("#point .warn").textContent())!, /refused/);
    });
    await open("none", 390, async (page) => {
      assert.match((await page.locator("#trouble").textContent())!, /2 points failed: the run got <b>nowhere<\/b>/);
      assert.match((await page.locator("#picture .empty").textContent())!, /None of these points has throughput/);
    });
  });

  test("the report of a point opens in a tab of its own, and works", () =>
    open("reports", 1440, async (page) => {
      const [tab] = await Promise.all([page.context().waitForEvent("page"), page.getByRole("button", { name: /Open the report/ }).click()]);
      const wrong: string[] = [];
      tab.on("pageerror", (e) => wrong.push(e.message));
      await tab.waitForSelector("#ladder");
      assert.match((await tab.locator(".eyebrow").textContent())!, /SSD and NIC share one uplink/);
      await tab.locator('button.link[data-link="nic"]').click();
      assert.equal(await tab.locator(".flows tbody tr").count(), 1);
      assert.deepEqual(wrong, []);
      await page.locator("#table tbody tr").nth(5).click();
      assert.equal(await page.getByRole("button", { name: /Open the report/ }).count(), 0, "this one has none");
      assert.match((await page.locator("#point .hint").nth(1).textContent())!, /written by this command/);
    }, "#point=2"));

  test("a page without a study says how to get one", async () => {
    const page = await browser.newPage();
    await page.goto(`file://${join(process.env["REPORT_ROOM"]!, "../python/tlplab/study/study.html")}`);
    assert.match((await page.locator("main").textContent())!, /tlplab sweep STUDY\.toml --html/);
    await page.close();
  });
});
