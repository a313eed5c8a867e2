/** The page in Chromium: drag a range, choose a link, step through the ladder; at desk and phone width, from a file, offline. */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { chromium, type Browser, type Locator, type Page } from "playwright-core";
import { CASES, fill } from "./fill";

const CHROMIUM = process.env["CHROMIUM"] ?? "/usr/bin/chromium";
const ARGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run"];
const skip = existsSync(CHROMIUM) ? false : `no Chromium at ${CHROMIUM}; set CHROMIUM to its path`;
const OUT = join(process.env["REPORT_ROOM"]!, "out/test/pages");

describe("the page", { skip }, () => {
  let browser: Browser;
  before(async () => {
    mkdirSync(OUT, { recursive: true });
    for (const [name, make] of Object.entries(CASES)) writeFileSync(join(OUT, `${name}.html`), fill(make()));
    browser = await chromium.launch({ executablePath: CHROMIUM, args: ARGS });
  });
  after(() => browser.close());

  /** Opens a case; the test fails on any error, warning or network request of the page. */
  async function open(name: string, width = 1440, run: (page: Page) => Promise<void>): Promise<void> {
    const page = await browser.newPage({ viewport: { width, height: width < 500 ? 844 : 1000 }, hasTouch: width < 500 });
    const wrong: string[] = [];
    page.on("pageerror", (e) => wrong.push(e.message));
    page.on("console", (m) => ["error", "warning"].includes(m.type()) && wrong.push(m.text()));
    page.on("request", (r) => r.url().startsWith("file://") || wrong.push(`request to ${r.url()}`));
    await page.goto(`file://${join(OUT, name)}.html`);
    await page.waitForSelector("h1");
    await run(page);
    assert.deepEqual(wrong, []);
    await page.close();
  }

  const dragOver = async (page: Page, selector: string, from: number, to: number, meanwhile = async () => {}) => {
    await page.locator(selector).first().scrollIntoViewIfNeeded();
    const box = (await page.locator(selector).first().boundingBox())!;
    await page.mouse.move(box.x + box.width * from, box.y + box.height / 2);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * ((from + to) / 2), box.y + box.height / 2, { steps: 4 });
    await page.mouse.move(box.x + box.width * to, box.y + box.height / 2);
    await meanwhile();
    await page.mouse.up();
  };

  for (const name of Object.keys(CASES)) {
    for (const width of [1440, 390]) {
      test(`${name} at ${width}: every part is there, nothing sticks out sideways`, () =>
        open(name, width, async (page) => {
          const wrong = name === "empty" ? [] : ["Errors", "Faults", "Links that went down"];
          const gains = name === "empty" ? [] : ["Gain from twice as much"];
          assert.deepEqual(await page.locator("section h2").allTextContents(), [...gains, "Topology", "Throughput over time", "Latency and its causes", "Resources over time", ...wrong, "Configuration space", "Transactions", "Ladder", "The experiment"]);
          const [inner, scroll] = await page.evaluate(() => [innerWidth, document.documentElement.scrollWidth]);
          assert.ok(scroll! <= inner!, `${scroll} px wide in a window of ${inner}`);
        }));
    }
  }

  test("a drag over a chart filters by time, everywhere, and the chip clears it", () =>
    open("quickstart", 1440, async (page) => {
      const before = await page.locator(".flows .rate b").first().textContent();
      await dragOver(page, "#throughput .u-over", 0.61, 0.66, async () => assert.ok(await page.locator(".brush").first().isVisible(), "the range shows while it is dragged"));
      const chip = page.locator(".chips .chip");
      await assertText(chip, /12\d.*13\d/);
      assert.notEqual(await page.locator(".flows .rate b").first().textContent(), before, "the rate is of the range");
      assert.match((await page.locator("#latency .note").first().textContent())!, /sampled transactions/);
      assert.match((await page.locator("#ladder .empty").first().textContent())!, /outside the ladder's window/);
      await page.getByRole("button", { name: /Choose the window/ }).click();
      assert.ok((await page.locator(".rung").count()) > 5, "the window shows packets again");
      await page.getByRole("button", { name: "Clear the time filter" }).click();
      assert.equal(await page.locator(".flows .rate b").first().textContent(), before);
      await assertText(chip, /Whole run/);
    }));

  test("a drag over the strip at the top filters, too", () =>
    open("quickstart", 1440, async (page) => {
      await dragOver(page, ".overview", 0.25, 0.5);
      await assertText(page.locator(".chips .chip"), /^(49|50)\.\d\sµs – 100\.\d\sµs/);
    }));

  test("a range can be typed", () =>
    open("quickstart", 1440, async (page) => {
      await page.getByLabel(/Start of the time range/).fill("20");
      await page.getByLabel(/Start of the time range/).press("Enter");
      await assertText(page.locator(".chips .chip"), /^20\sµs – 200\sµs/);
    }));

  test("arrow keys and Enter choose a range on a chart", () =>
    open("quickstart", 1440, async (page) => {
      await page.locator("#throughput .chart").first().focus();
      await page.keyboard.press("ArrowRight");
      for (let i = 0; i < 6; i++) await page.keyboard.press("Shift+ArrowRight");
      assert.match((await page.locator(".tip").textContent())!, /ssd/);
      await page.keyboard.press("Enter");
      assert.equal(await page.getByRole("button", { name: "Clear the time filter" }).count(), 1);
      await page.keyboard.press("Escape");
      assert.equal(await page.getByRole("button", { name: "Clear the time filter" }).count(), 0);
    }));

  test("a click on a link filters flows, wire, attribution, resources and ladder", () =>
    open("quickstart", 1440, async (page) => {
      await page.locator('button.link[data-link="nic"]').click();
      await assertText(page.locator(".chips .chip"), /link nic ⇄ sw0/);
      assert.equal(await page.locator(".flows tbody tr").count(), 1, "the SSD does not use it");
      assert.equal(await page.locator("#topology table tbody tr").count(), 2);
      assert.match((await page.locator("#throughput h4").first().textContent())!, /nic → sw0/);
      assert.ok((await page.locator("#resources .small-multiples figcaption").allTextContents()).every((t) => /nic/.test(t)));
      assert.deepEqual(await page.locator("#resources .under-way .legend li").allTextContents(), ["nic"]);
      assert.deepEqual(await page.locator("#ladder .columns b").allTextContents(), ["nic", "sw0"]);
      assert.ok((await page.locator("#latency .attribution tbody td:nth-child(2)").allTextContents()).every((t) => t === "nic → sw0"));
      await page.locator('button.link[data-link="nic"]').click();
      assert.equal(await page.locator(".flows tbody tr").count(), 2);
    }));

  test("what twice as much of each resource brings stands as bars, the limit apart from the others", () =>
    open("quickstart", 1440, async (page) => {
      const rows = page.locator("#gains tbody tr");
      assert.equal(await rows.count(), 3);
      assert.deepEqual((await rows.locator("b").allTextContents()).map((t) => t.replace(/\s/g, " ")), ["+41 %", "+2 %", "−10 %"]);
      assert.equal(await page.locator("#gains tr.limit").count(), 1);
      const width = async (row: number) => (await rows.nth(row).locator("i").boundingBox())!;
      const [most, least, less] = [await width(0), await width(1), await width(2)];
      assert.ok(most.width > 10 * least.width && less.x + less.width <= most.x + 1, "to scale, and what costs to the other side");
    }));

  test("the sentence's link is a button", () =>
    open("quickstart", 1440, async (page) => {
      await page.locator("h1 button").click();
      await assertText(page.locator(".chips .chip"), /link sw0 ⇄ host.rp0/);
    }));

  test("the ladder is stepped by button and key, from request to completion and back, and only shows what is in sight", () =>
    open("reads", 1440, async (page) => {
      const chosen = () => page.locator(".rung.chosen").getAttribute("id");
      const spoken = () => page.locator(".rung.chosen").getAttribute("aria-label");
      const first = await chosen();
      assert.match((await spoken())!, /^MRd/);
      await page.getByRole("button", { name: "Jump to the completion" }).click();
      assert.match((await spoken())!, /^CplD/);
      await page.locator("#ladder .scroller").focus();
      await page.keyboard.press("r");
      assert.match((await spoken())!, /^MRd/);
      await page.keyboard.press("Home");
      assert.equal(await chosen(), first);
      await page.keyboard.press("ArrowDown");
      assert.notEqual(await chosen(), first);
      await page.keyboard.press("ArrowUp");
      await page.keyboard.press("ArrowRight");
      assert.ok((await page.locator(".waterfall li").count()) > 5);
      await page.keyboard.press("End");
      await page.waitForTimeout(150);
      const [box, frame] = [await page.locator(".rung.chosen .shaft").boundingBox(), await page.locator("#ladder .scroller").boundingBox()];
      assert.ok(box!.y > frame!.y && box!.y + box!.height < frame!.y + frame!.height, "the end is scrolled into sight");
      const drawn = await page.locator(".rung").count();
      assert.ok(drawn > 10 && drawn < 200, `${drawn} of 1200 are drawn`);
    }));

  test("only one transaction, and without DLLPs", () =>
    open("quickstart", 1440, async (page) => {
      await page.getByLabel("DLLPs").uncheck();
      assert.equal(await page.locator(".rung.dllp").count(), 0);
      await page.getByLabel("only this transaction").check();
      assert.equal(await page.locator(".rung").count(), 2, "one write, two links");
    }));

  const status = (page: Page) => page.locator(".search .hits").textContent();
  const word = (page: Page) => page.locator(".search .note").textContent();

  test("a search in the ladder counts its hits, steps through them round about, and marks them", () =>
    open("reads", 1440, async (page) => {
      const box = page.getByLabel("Search the ladder");
      const expected = CASES["reads"]!().ladder!.packets.filter((p) => p.kind === "MRd" && p.tag === 3).length;
      assert.ok(expected > 2);
      await box.fill("MRd tag 3");
      assert.equal(await status(page), `hit 1 of ${expected}`);
      assert.match((await page.locator(".rung.chosen").getAttribute("aria-label"))!, /^MRd.*tag 0x3/);
      assert.ok((await page.locator(".rung.found").count()) >= 1);
      await page.getByRole("button", { name: "Next hit" }).click();
      assert.equal(await status(page), `hit 2 of ${expected}`);
      await box.press("Enter");
      await page.locator("#ladder .scroller").focus();
      await page.keyboard.press("Shift+N");
      assert.equal(await status(page), `hit 2 of ${expected}`);
      await page.getByRole("button", { name: "Previous hit" }).click();
      await page.getByRole("button", { name: "Previous hit" }).click();
      assert.equal(await status(page), `hit ${expected} of ${expected}`);
      await page.getByRole("button", { name: "Next packet" }).click();
      assert.equal(await status(page), `${expected} hits`, "another packet is chosen");
      await box.press("Escape");
      assert.equal(await page.locator(".rung.found").count(), 0);
      assert.equal(await page.locator(".search .note").count(), 0);
    }));

  test("where a search finds nothing it says what was searched, which is a part of the run", () =>
    open("reads", 1440, async (page) => {
      const box = page.getByLabel("Search the ladder");
      await box.fill("0xdead0000");
      assert.match((await word(page))!, /^None of the 1\s200 packets of the ladder, 60\.0\d*\sµs to \d+\.\d+\sµs of a run until 200\.0\d*\sµs, has address 0xdead0000\. This page has no packets outside it\.$/);
      assert.equal(await status(page), "0 hits");
      assert.ok(await page.getByRole("button", { name: "Next hit" }).isDisabled());
      assert.ok((await page.locator(".rung").count()) > 10, "the ladder stays");
      await box.fill("tag x");
      assert.match((await word(page))!, /no number of a tag/);
      assert.equal(await status(page), "", "no count of what was not searched");
    }));

  test("hits that a filter hides are counted, and can be shown", () =>
    open("reads", 1440, async (page) => {
      const total = CASES["reads"]!().ladder!.packets.filter((p) => p.kind === "Ack").length;
      await page.getByLabel("Search the ladder").fill("Ack");
      assert.match((await status(page))!, new RegExp(` of ${total}$`));
      assert.doesNotMatch((await word(page))!, /hidden/);
      await page.getByLabel("DLLPs").uncheck();
      assert.equal(await status(page), "0 hits");
      assert.match((await word(page))!, new RegExp(`All ${total} hits are hidden by the filter`));
      await page.getByRole("button", { name: "Show them" }).click();
      assert.match((await status(page))!, new RegExp(`${total}`));
      await page.locator('button.link[data-link="gpu"]').click();
      assert.match((await word(page))!, /\d+ more hits are hidden by the filter\. Show all/);
    }));

  const cells = (page: Page, column: number) => page.locator(`#transactions tbody tr:not([aria-hidden]) > *:nth-child(${column})`).allTextContents();

  test("the table of transactions sorts, and a line leads to its packets in the ladder", () =>
    open("reads", 1440, async (page) => {
      assert.match((await page.locator("#transactions .hint").textContent())!, /^A uniform sample of 1\s500 of the [\d\s]+ transactions that ended well and the [\d\s]+ with packets in the ladder\. Failed transactions \(9\) are listed only if the ladder has packets of them\./);
      const drawn = await page.locator("#transactions tbody tr").count();
      assert.ok(drawn > 10 && drawn < 80, `${drawn} lines are drawn`);
      const ns = (text: string) => parseFloat(text) * (/µs/.test(text) ? 1000 : 1);
      const falling = (await cells(page, 2)).map(ns);
      assert.ok(falling.every((v, i) => i === 0 || v <= falling[i - 1]!), "the longest first");
      await page.locator("#transactions thead").getByRole("button", { name: "latency" }).click();
      const rising = (await cells(page, 2)).map(ns);
      assert.ok(rising.every((v, i) => i === 0 || v >= rising[i - 1]!) && rising[0]! < falling[0]!);
      await page.locator("#transactions thead").getByRole("button", { name: "in the ladder" }).click();
      await page.locator("#transactions thead").getByRole("button", { name: "address" }).click();
      const addresses = (await cells(page, 5)).map((a) => BigInt(a));
      assert.ok(addresses.every((a, i) => i === 0 || a >= addresses[i - 1]!));
      assert.ok((await cells(page, 4)).every((kind) => /^M(Rd|Wr)$/.test(kind)), "of the ladder");
      const line = page.locator("#transactions tbody tr:not([aria-hidden])").nth(4);
      const address = (await line.locator("td").nth(3).textContent())!;
      await line.getByRole("button", { name: /packet/ }).click();
      assert.match((await page.locator(".rung.chosen").getAttribute("aria-label"))!, new RegExp(`^M(Rd|Wr).*addr ${address}`));
      await page.waitForTimeout(150);
      assert.ok((await page.locator(".rung.chosen .shaft").boundingBox())!.y < 1000, "the ladder is in sight");
    }));

  test("the table follows the filter, and the way into the ladder lifts what hides the packets", () =>
    open("reads", 1440, async (page) => {
      await page.locator("#transactions thead").getByRole("button", { name: "in the ladder" }).click();
      await page.locator("#transactions tbody tr:not([aria-hidden])").first().click();
      await page.locator("#throughput .u-over").first().scrollIntoViewIfNeeded();
      await dragOver(page, "#throughput .u-over", 0.61, 0.66);
      assert.match((await page.locator("#transactions .counted").textContent())!, /^\d+ of the [\d\s]+ transactions listed$/);
      await page.getByRole("button", { name: /Show its \d+ packets? in the ladder/ }).click();
      await assertText(page.locator(".chips .chip"), /Whole run/);
      assert.equal(await page.locator(".rung.chosen").count(), 1);
    }));

  test("figures of latency lead to the transaction nearest to them, which is said to be that", () =>
    open("reads", 1440, async (page) => {
      await page.getByLabel("Transactions of").selectOption("nic");
      assert.ok((await cells(page, 3)).every((flow) => flow === "nic"));
      await page.locator('.percentiles button[title$="the p99"]').click();
      const one = page.locator("#transactions .one");
      assert.match((await one.textContent())!, /^Of the transactions listed here the nearest to the p99 of ssd, [\d.]+\sµs: [\d.]+\s[nfp]s (above|below) it\.read of 4\u202f096 B at 0x4[0-9a-f]+ of ssd \(02:00\.0, tag 0x[0-9a-f]+\): /);
      assert.equal(await page.locator("#transactions tr.chosen").count(), 1, "its line is in sight");
      assert.match((await one.textContent())!, /Its packets are not in the ladder\. Run again with --set ladder\.at=\d+ns/);
      await page.locator('.percentiles button[title$="the max"]').click();
      assert.match((await one.textContent())!, /the max of ssd/);
      await one.getByRole("button", { name: "Choose its time range" }).click();
      assert.equal(await page.getByRole("button", { name: "Clear the time filter" }).count(), 1);
      await page.locator('.percentiles button[title$="the max"]').click();
      assert.match((await one.textContent())!, /^It has the max of ssd/, "under a filter the figures are those of the sample");
    }));

  test("resources are chosen by their kind", () =>
    open("reads", 1440, async (page) => {
      assert.deepEqual(await page.locator(".under-way .legend li").allTextContents(), ["ssd", "nic", "gpu"], "how many were under way is drawn first");
      await page.getByRole("radio", { name: "Tags" }).click();
      assert.deepEqual((await page.locator("#resources figcaption b").allTextContents()).sort(), ["gpu", "nic", "ssd"]);
    }));

  test("the table of transactions is searched by address, tag and function, and a search in the ladder leads there", () =>
    open("reads", 1440, async (page) => {
      const table = page.locator("#transactions .counted");
      const search = page.getByLabel("Search the transactions");
      const whole = await table.textContent();
      await search.fill("tag 0x1f 02:00.0");
      assert.match((await table.textContent())!, /^\d+ of the /);
      assert.ok((await cells(page, 3)).every((flow) => flow === "ssd"));
      assert.ok((await cells(page, 7)).every((tag) => tag === "0x1f"));
      await search.fill("0xzz");
      assert.match((await page.locator("#transactions .search .warn").textContent())!, /no address/);
      await search.press("Escape");
      assert.equal(await table.textContent(), whole);
      // A transaction of the sample, by its address, which is not in the ladder.
      const address = (await cells(page, 5)).find((a) => a.startsWith("0x4"))!;
      await page.getByLabel("Search the ladder").fill(address);
      assert.match((await page.locator("#ladder .search .note").textContent())!, /^None of .*1 transaction in the table matches\. Show it/);
      await page.locator("#ladder .search").getByRole("button", { name: "Show it" }).click();
      assert.equal(await search.inputValue(), address);
      assert.deepEqual(await cells(page, 5), [address]);
    }));

  for (const width of [1280, 390]) {
    test(`the configuration space at a moment, at ${width}: decoded, byte by byte, what changed marked`, () =>
      open("quickstart", width, async (page) => {
        const part = page.locator("#registers");
        await part.getByLabel("Function", { exact: true }).selectOption({ label: "02:00.0 ssd" });
        const register = (name: string) => part.locator(".decoded dl > div", { has: page.locator("dt", { hasText: new RegExp(`^[0-9a-f]+${name}$`) }) });
        const marked = async () => (await part.locator(".decoded .changed dt").allTextContents()).map((t) => t.replace(/^[0-9a-f]{2,3}(?=[A-Z])/, ""));
        assert.deepEqual(await marked(), ["Command", "DevSta", "UESta"], "at the end, since the start");
        assert.match((await register("Command").textContent())!, /BusMaster-.*changed at 150\.0+\sµs by configuration write/);
        await part.getByRole("button", { name: "To the change before" }).click();
        await part.getByRole("button", { name: "To the change before" }).click();
        assert.match((await register("Command").textContent())!, /BusMaster\+/);
        assert.equal(await part.getByLabel(/^Moment/).inputValue(), "100");
        await part.getByLabel(/^Moment/).fill("50");
        await part.getByLabel(/^Moment/).press("Enter");
        assert.match((await register("UESta").textContent())!, /UnsupReq\+.*changed at 50\.0+\sµs by hardware/);
        assert.equal(await part.locator(".dump mark").count(), 2);
        assert.deepEqual(await part.locator(".dump mark").allTextContents(), ["09", "10"]);
        await part.getByLabel(/changed since/).selectOption("before");
        assert.deepEqual(await marked(), ["DevSta", "UESta"], "of the two moments it is the other way round, too");
        // A range that is chosen brings its end; a phone has no fields for it.
        if (width > 500) {
          await page.getByLabel(/Start of the time range/).fill("120");
          await page.getByLabel(/Start of the time range/).press("Enter");
          await part.getByLabel(/changed since/).selectOption("start");
          assert.deepEqual(await marked(), ["Command"], "in the range alone");
        }
        // From a change in the table to its moment and function.
        await part.getByLabel("changes of all functions").check();
        assert.equal(await part.locator(".listed tbody tr:not([aria-hidden])").count(), 8);
        await part.locator(".listed tbody tr", { hasText: "nic" }).first().click();
        assert.match((await part.locator(".note").first().textContent())!, /1\u202f234 changes of this function between 60\.0+\sµs and 140\.0+\sµs were recorded together/);
        await part.getByLabel(/^Moment/).fill("80");
        await part.getByLabel(/^Moment/).press("Enter");
        assert.match((await part.locator(".note .warn").textContent())!, /recorded together; the registers are shown as of 60\.0+\sµs/);
        assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= width);
      }));
  }

  test("on a phone long names wrap: none covers a figure, none is cut off", () =>
    open("long", 390, async (page) => {
      const [name, rate] = await page.locator(".flows tbody tr").first().evaluate((row) => [".who > span", ".rate b"].map((s) => row.querySelector(s)!.getBoundingClientRect().toJSON() as DOMRect));
      assert.ok(name!.right <= rate!.left, `the name ends at ${name!.right}, its rate begins at ${rate!.left}`);
      const cut = await page.evaluate(() => {
        const out: string[] = [];
        const walker = document.createTreeWalker(document.querySelector("main")!, NodeFilter.SHOW_TEXT);
        for (let node = walker.nextNode(); node; node = walker.nextNode()) {
          const within = node.parentElement!;
          if (within.closest(".sr, .scroll, .scroller, pre, svg, option, .node, .picker") || getComputedStyle(within).display === "none") continue;
          const range = document.createRange();
          range.selectNodeContents(node);
          if ([...range.getClientRects()].some((r) => r.right > innerWidth + 0.5)) out.push(node.textContent!);
        }
        return out;
      });
      assert.deepEqual(cut, []);
    }));

  test("a run of ten devices and 10 ms takes less than a second of the processor to open", async () => {
    const page = await browser.newPage({ viewport: { width: 1440, height: 1000 } });
    const session = await page.context().newCDPSession(page);
    await session.send("Performance.enable", { timeDomain: "threadTicks" }); // of the page's thread alone
    await page.goto(`file://${join(OUT, "ten")}.html`);
    await page.waitForSelector("#transactions tbody tr");
    const spent = (await session.send("Performance.getMetrics")).metrics.find((m) => m.name === "TaskDuration")!.value;
    assert.ok(spent < 1, `${spent} s`);
    await page.close();
  });

  test("the instants beside the ladder are whole, of a long run, too", () =>
    open("late", 1440, async (page) => {
      const cut = await page.locator(".gutter").evaluate((gutter) => {
        const { left } = gutter.getBoundingClientRect();
        return [...gutter.querySelectorAll("text")].filter((t) => t.getBoundingClientRect().left < left).map((t) => t.textContent);
      });
      assert.match((await page.locator(".gutter text").first().textContent())!, /^4060\.0\d+\sµs$|^4\.0600\d+\sms$/);
      assert.deepEqual(cut, []);
    }));

  test("the instants stay beside the ladder however far it is scrolled sideways", () =>
    open("ten", 390, async (page) => {
      const [gutter, frame] = await page.locator("#ladder .scroller").evaluate((scroller) => {
        scroller.scrollLeft = scroller.scrollWidth;
        return [scroller.querySelector(".gutter")!, scroller].map((e) => e.getBoundingClientRect().left);
      });
      assert.equal(gutter, frame);
    }));

  test("on a phone the way into the ladder brings the packet into sight", () =>
    open("reads", 390, async (page) => {
      await page.locator("#transactions .listed").evaluate((scroller) => (scroller.scrollLeft = scroller.scrollWidth));
      await page.locator("#transactions thead").getByRole("button", { name: "in the ladder" }).click();
      await page.locator("#transactions tbody").getByRole("button", { name: /packet/ }).nth(3).click();
      await page.waitForTimeout(150);
      const { y } = (await page.locator(".rung.chosen .shaft").boundingBox())!;
      assert.ok(y > 60 && y < 844, `at ${y} of 844`);
    }));

  test("tooltips tell the figures on hover, and on a phone a tap chooses", async () => {
    await open("quickstart", 1440, async (page) => {
      const hover = async (what: Locator) => {
        await what.scrollIntoViewIfNeeded();
        await page.waitForTimeout(150); // scrolling hides tooltips
        await what.hover();
      };
      await hover(page.locator('button.link[data-link="ssd"]'));
      assert.match((await page.locator(".tip").textContent())!, /TLP overhead.*idle/s);
      await hover(page.locator("#latency .bar").nth(3));
      assert.match((await page.locator(".tip").textContent())!, /queueing/);
    });
    await open("quickstart", 390, async (page) => {
      await page.locator('button.link[data-link="ssd"]').tap();
      await assertText(page.locator(".chips .chip"), /link ssd/);
    });
  });

  test("a bus has its mode and its use, and its devices no link of their own", () =>
    open("bus", 1440, async (page) => {
      assert.match((await page.locator(".node.bus").textContent())!, /pcix.*80\.0.*PCI-X 133 64b/);
      assert.deepEqual(await page.locator(".link .spec b").allTextContents(), ["gen1 ×8", "gen1 ×1"]);
      assert.equal(await page.locator(".edge.bus").count(), 1);
      await page.locator('button.link[data-link="split"]').click();
      await assertText(page.locator(".chips .chip"), /split ⇄ pcix/);
      assert.equal(await page.locator(".flows tbody tr").count(), 1);
    }));

  for (const width of [1440, 390]) {
    test(`reads over a bus and over PCI Express stand side by side, or below each other, at ${width}`, () =>
      open("bus", width, async (page) => {
        assert.equal(await page.locator(".rung .band").count(), 12, "three transactions of four phases");
        await page.getByRole("radio", { name: "Side by side" }).click();
        assert.deepEqual(await page.locator(".compare figcaption b").allTextContents(), ["immediate", "split", "pcie"]);
        const tops = await page.locator(".compare figure").evaluateAll((all) => all.map((f) => f.getBoundingClientRect().top));
        assert.equal(new Set(tops).size, width < 500 ? 3 : 1);
        const heights = await page.locator(".compare svg").evaluateAll((all) => all.map((f) => f.clientHeight));
        assert.ok(heights[2]! > heights[1]! && heights[1]! > heights[0]!, "one scale of time");
        assert.match((await page.locator(".compare figure").nth(1).textContent())!, /address.*device select.*MRd, split.*CplD/s);
        await page.locator(".compared button").first().click();
        assert.equal(await page.locator(".compare figure").count(), 2);
      }));
  }

  test("what went wrong is told: errors, what root ports heard, faults that have struck, links that went down", () =>
    open("quickstart", 1440, async (page) => {
      assert.deepEqual(await page.locator("#errors tbody th").allTextContents(), ["Surprise Down", "ERR_FATAL"]);
      assert.deepEqual(await page.locator("#faults tbody td").allTextContents(), ["up", "lose", "all", "5", "1"]);
      const cells = await page.locator("#outages tbody td").allTextContents();
      assert.equal(cells.at(-1), "never", "it was not configured again");
      assert.equal(cells.length, 4);
    }));

  test("markup in an experiment stays text", () =>
    open("quickstart", 1440, async (page) => {
      assert.match((await page.locator("#experiment pre").textContent())!, /<b>&amp; not a tag<\/b> <\/script>/);
    }));

  test("a page without a result says how to get one", async () => {
    const page = await browser.newPage();
    await page.goto(`file://${join(process.env["REPORT_ROOM"]!, "dist/report.html")}`);
    assert.match((await page.locator("main").textContent())!, /tlplab run EXPERIMENT\.toml --report/);
    await page.close();
  });
});

async function assertText(where: ReturnType<Page["locator"]>, expected: RegExp): Promise<void> {
  assert.match((await where.first().textContent())!, expected);
}
