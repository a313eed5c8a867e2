/** What the page of a study shows is what its columns say: means, filters, fronts, pictures, the address. Without a browser. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { expand, readStudy, SCHEMA } from "../src/study/document";
import { byFactors, nameWith, pictureOf, shareOf } from "../src/study/picture";
import { besides, commandOf, filtered, front, grouped, meanOf, pointsOf, tied, varying } from "../src/study/points";
import { pageOf, unpack } from "../src/study/report";
import { fromHash, toHash, usual, type Chosen } from "../src/study/state";
import { order } from "../src/long_table";
import { linearTicks, logTicks, setting, written, writtenMean } from "../src/study/units";
import { STUDIES } from "./study_cases";

const points = pointsOf(STUDIES["uplinks"]!());
const base = usual(points);
const all = Array.from({ length: points.count }, (_, p) => p);
const draw = (to: Partial<Chosen>, of = all) => pictureOf(points, of, { ...base, ...to });

test("columns are expanded whichever way they are written", () => {
  assert.deepEqual(expand({ all: 3 }, 2), [3, 3]);
  assert.deepEqual(expand({ of: ["a", "b"], at: [1, 0, 1] }, 3), ["b", "a", "b"]);
  assert.deepEqual(expand([1, null], 2), [1, null]);
});

test("a page that is empty, cut or of another version says so", () => {
  assert.throws(() => readStudy("/*TLPLAB_RESULT*/"), /tlplab sweep STUDY\.toml --html/);
  assert.throws(() => readStudy('{"schema":'), /cut short/);
  assert.throws(() => readStudy('{"schema":"tlplab/study-page/0"}'), new RegExp(SCHEMA));
});

test("runs of a point are its mean with Student's interval; what did not end well is no part of it", () => {
  assert.equal(points.count, 60);
  assert.equal(meanOf([]), null);
  assert.deepEqual(meanOf([4]), { mean: 4, half: null });
  // By hand: 9, 10, 11 have mean 10 and standard deviation 1; 4.303 / √3 = 2.4843.
  const { mean, half } = meanOf([9, 10, 11])!;
  assert.ok(Math.abs(mean - 10) < 1e-12 && Math.abs(half! - 2.4843) < 1e-4);
  // Beyond the table: of 39 degrees of freedom the quantile is 2.0227, and the deviation of as many 0 as 1 is √(10 / 39).
  const many = meanOf(Array.from({ length: 40 }, (_, i) => i % 2))!;
  assert.ok(Math.abs(many.half! / (2.0227 * Math.sqrt(10 / 39 / 40)) - 1) < 0.002);
  assert.equal(points.figure(0)[0]!.mean, 5.2e9);
  assert.equal(points.figure(0)[20], null);
  assert.deepEqual(points.trouble[20], { kind: "refused", message: "switch.sw0.link: unsupported generation \"gen9\"" });
  assert.deepEqual([points.runs[0], points.runs[20]], [3, 0]);
});

test("a figure that is known of points only", () => {
  const study = STUDIES["sizes"]!();
  study.columns.figures[2] = { means: expand(study.columns.point, study.rows).map((p) => (p === 1 ? null : [p, 0.5])) };
  const of = pointsOf(study);
  assert.deepEqual(of.figure(2).slice(0, 3), [{ mean: 0, half: 0.5 }, null, { mean: 2, half: 0.5 }]);
});

test("a filter keeps what has all of the values", () => {
  const left = filtered(points, new Map([[0, new Set([0, 2])], [2, new Set([1])]]));
  assert.equal(left.length, 8);
  assert.ok(left.every((p) => points.axes[2]!.values[points.axes[2]!.at[p]!] === 16));
  assert.deepEqual(varying(points, left), [0, 1]);
  assert.deepEqual(filtered(points, new Map([[0, new Set<number>()]])), []);
});

test("the front is what nothing beats, by comparing each with each", () => {
  let seed = 1;
  const random = () => (seed = (seed * 48271) % 2147483647) / 2147483647;
  for (let round = 0; round < 60; round++) {
    // Few values, so that there are equal ones.
    const values = Array.from({ length: 30 }, () => [Math.floor(random() * 6), Math.floor(random() * 6)] as const);
    const means = (i: 0 | 1) => values.map((v) => ({ mean: v[i], half: null }));
    const [xMore, yMore] = [random() < 0.5, random() < 0.5];
    const better = (a: number, b: number, more: boolean) => (more ? a > b : a < b);
    const beats = (a: readonly [number, number], b: readonly [number, number]) =>
      !better(b[0], a[0], xMore) && !better(b[1], a[1], yMore) && (better(a[0], b[0], xMore) || better(a[1], b[1], yMore));
    const expected = values.flatMap((v, p) => (values.some((other) => beats(other, v)) ? [] : [p]));
    assert.deepEqual([...front(values.map((_, p) => p), means(0), means(1), xMore, yMore)].sort((a, b) => a - b), expected);
  }
});

test("lines: the longest axis of numbers goes along, one line for each combination of the others, in the order of their values", () => {
  assert.deepEqual([base.x, base.colour, base.beside], [2, 1, 0], "tags along, rates by colour, an uplink in each picture");
  const { panels, missing, unseen } = draw({});
  assert.equal(panels.length, 2, "nothing of gen9 can be drawn");
  assert.equal(missing, 20);
  assert.deepEqual(unseen, []);
  assert.deepEqual(panels.map((p) => p.lines.length), [4, 4]);
  const [line] = panels[0]!.lines;
  assert.deepEqual(line!.x, [8, 16, 32, 64, 128]);
  assert.ok(line!.half.every((h) => h > 0), "bands");
  assert.ok(panels[0]!.x.kind === "numbers" && panels[0]!.x.log, "tags double");
  const drawn = new Set(panels.flatMap((p) => p.lines.flatMap((l) => l.points)));
  assert.equal(drawn.size, 40, "each point once");
  assert.equal(draw({ beside: -1 }).dashed, 0, "what is left dashes");
  assert.equal(draw({ beside: -1, colour: -1 }).unseen.length, 2, "or is said");
});

test("what follows from the axis that goes along makes no lines", () => {
  const study = STUDIES["uplinks"]!();
  const rate = expand(study.columns.axes[1]!, study.rows) as number[];
  study.axes.push({ name: "offered", unit: "b/s" });
  study.columns.axes.push(rate.map((r) => r / 2));
  const zipped = pointsOf(study);
  assert.deepEqual(besides(zipped, all, [1]), [0, 2]);
  const { panels, dashed } = pictureOf(zipped, all, { ...base, x: 1, colour: 2, beside: 0 });
  assert.deepEqual([panels[0]!.lines.length, dashed], [5, -1], "one for each number of tags");
  assert.deepEqual(pictureOf(zipped, all, { ...base, kind: "map", x: 1, up: 2, beside: 0 }).unseen, []);
});

test("a random sample is no line: its axes do not go along with each other, though each value occurs once", () => {
  const study = STUDIES["sizes"]!();
  const other = (of: (i: number) => number | string): number => {
    study.axes.push({ name: `axis ${study.axes.length}`, unit: typeof of(0) === "number" ? "1" : null });
    return study.columns.axes.push(Array.from({ length: study.rows }, (_, i) => of(i))) - 1;
  };
  const [random, text] = [other((i) => (i * 7919) % 375), other((i) => (i % 2 ? "a" : "b"))];
  const [falling, stretches] = [other((i) => -i), other((i) => (i < 100 ? "small" : "large"))];
  const sample = pointsOf(study);
  const of = Array.from({ length: sample.count }, (_, p) => p);
  assert.deepEqual([random, text, falling, stretches].map((a) => tied(sample, of, a, 0)), [false, false, true, true]);
  const { panels } = pictureOf(sample, of, { ...usual(sample), x: 0, colour: text, beside: -1 });
  assert.equal(panels[0]!.lines.length, 375, "points alone");
  assert.equal(nameWith(sample, of, 0), "size with axis 3, axis 4");
});

test("a map has a cell for each pair of values, the mean of the points in it, and says by what they differ", () => {
  const { panels, range, unseen } = draw({ kind: "map", x: 2, up: 1, beside: -1 });
  const [panel] = panels;
  assert.equal(panel!.cells.length, 20);
  assert.ok(panel!.cells.every((c) => c.points.length === 2));
  const [cell] = panel!.cells;
  assert.equal(cell!.value, (points.figure(0)[cell!.points[0]!]!.mean + points.figure(0)[cell!.points[1]!]!.mean) / 2);
  assert.deepEqual(unseen, [0]);
  assert.equal(shareOf(range!, range!.low), 0);
  assert.equal(shareOf({ low: 1, high: 100, log: true }, 10), 0.5);
  assert.equal(draw({ kind: "map", x: 2, up: 1, beside: 0 }).panels.length, 2);
});

test("a front has all points and marks the best", () => {
  const { panels } = draw({ kind: "front", y: 0, across: 1, yMore: true, xMore: false });
  const { dots } = panels[0]!;
  assert.equal(dots.length, 40);
  const best = dots.filter((d) => d.best);
  assert.ok(best.length > 0 && best.length < 40);
  for (const d of dots) assert.equal(d.best, !dots.some((o) => o.y >= d.y && o.x <= d.x && (o.y > d.y || o.x < d.x)));
});

test("a scale is logarithmic where values are a factor apart", () => {
  assert.ok(byFactors([32, 64, 128, 256, 512]) && byFactors([90, 600, 2000]));
  assert.ok(!byFactors([5, 10, 15, 20, 25, 30, 35, 40]) && !byFactors(Array.from({ length: 300 }, (_, i) => 64 + 4 * i)));
  assert.ok(!byFactors([0, 1, 2, 4, 8]) && !byFactors([64, 1024]));
});

test("marks are round, sizes in powers of two", () => {
  assert.deepEqual(linearTicks(0, 1e11, 6, "b/s"), [0, 2e10, 4e10, 6e10, 8e10, 1e11]);
  assert.deepEqual(linearTicks(64, 1500, 6, "B"), [256, 512, 768, 1024, 1280]);
  assert.deepEqual(logTicks(90, 3000, 6, "ns"), [100, 200, 500, 1000, 2000]);
  assert.deepEqual(logTicks(64, 65536, 6, "B"), [64, 256, 1024, 4096, 16384, 65536]);
  assert.deepEqual(logTicks(110, 130, 6, "ns"), [110, 130], "no power is inside");
  for (const unit of ["B", "ns"]) for (const high of [1.0001, 2, 1e3, 1e12]) assert.ok(logTicks(1, high, 5, unit).length <= 5);
});

test("figures and settings have their units", () => {
  assert.deepEqual([written(57.41e9, "b/s"), written(3724, "ns"), written(1518, "B"), written(4096, "B"), written(139.7e6, "1/s"), written(0.4941, "1"), written(256, "1")],
    ["57.41\u202fGb/s", "3.724\u202fµs", "1518\u202fB", "4\u202fKiB", "139.7\u202fM/s", "0.4941", "256"]);
  assert.deepEqual([setting(true, null), setting("gen4 x4", null), setting(2000, "ns")], ["true", "gen4 x4", "2\u202fµs"]);
  assert.deepEqual([writtenMean({ mean: 100, half: 2 }, "ns"), writtenMean({ mean: 100, half: 0.01 }, "ns"), writtenMean({ mean: 0, half: 5 }, "ns"), writtenMean(null, "ns")],
    ["100\u202fns ±2\u202f%", "100\u202fns", "0 ±5\u202fns", "–"]);
});

test("a table is sorted by numbers, what has none comes last, and what is equal stays in its order", () => {
  const values = [3, null, 1, 3, 20];
  const by = (down: boolean) => order([0, 1, 2, 3, 4], { value: (p) => values[p]! }, down);
  assert.deepEqual(by(false), [2, 0, 3, 4, 1]);
  assert.deepEqual(by(true), [4, 0, 3, 2, 1]);
});

test("what is chosen stands in the address and is read back", () => {
  const chosen: Chosen = {
    ...base, kind: "front", y: 1, across: 0, xMore: true, yMore: true, colour: -1, beside: 1, logX: true, logY: false, kept: new Map([[1, new Set([0, 3])]]), table: [0, 2],
    sort: { by: "figure lanes", down: true }, point: 5,
  };
  assert.equal(toHash(points, base, base), "");
  assert.deepEqual(fromHash(points, `#${toHash(points, chosen, base)}`, base), chosen);
  assert.deepEqual(fromHash(points, "#view=cake&y=none&keep.rate=9.x.-1&point=4711", base), { ...base, kept: new Map([[1, new Set()]]) });
});

test("the command of a point has what it sets and its seed, and a shell reads it as it is meant", () => {
  const command = commandOf(points, 21)!;
  assert.match(command, /^tlplab run one\.toml --set stop=60us --set 'uplink="gen9 x8"' --set 'rate="5000000000"' --set 'tags="16"' --report point-21\.html$/);
  assert.match(commandOf(points, 0)!, /--seed 1 --report/);
  const words = execFileSync("sh", ["-c", `${command.replace(/^tlplab/, "printf '%s\\n'")}`], { encoding: "utf8" }).trimEnd().split("\n");
  assert.deepEqual(words.slice(4, 6), ["--set", 'uplink="gen9 x8"']);
});

test("points are grouped in the order of their values", () => {
  assert.deepEqual(grouped(points, [59, 0, 1, 20], [0, 2]).map((g) => [g.key.join(), g.points.join()]), [["0,0", "0"], ["0,1", "1"], ["1,0", "20"], ["2,4", "59"]]);
});

test("the report of a point is the viewer with the result in it", async () => {
  const { reports } = STUDIES["reports"]!();
  const page = await pageOf(reports!, "2");
  assert.match(page, /^<!doctype html>/);
  assert.match(page, /<script type="application\/json" id="tlplab-result">\{"schema"/);
  assert.equal(JSON.parse(await unpack(reports!.results["2"]!)).schema, "tlplab/result/1");
  assert.equal(page.split("</script>").length, 3, "no text of the result ends the script");
});
