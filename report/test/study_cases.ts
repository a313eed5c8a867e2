/** Invented studies: an ordinary one with repeats and refused points, one with dense sizes, and the edges. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { SCHEMA, type Column, type StudyDocument, type Value } from "../src/study/document";
import { CASES } from "./cases";

interface Run {
  point: number;
  values: Value[];
  seed: number | null;
  kind: "done" | "failed" | "refused";
  figures: (number | null)[];
}

const LINKS = ["gen4 x4", "gen9 x8", "gen4 x8"];

function studyOf(title: string, axes: StudyDocument["axes"], figures: StudyDocument["figures"], runs: Run[], more: Partial<StudyDocument> = {}): StudyDocument {
  const column = <T>(values: T[]): Column<T> => {
    const of = [...new Set(values)];
    return of.length === 1 ? { all: of[0]! } : of.length * 3 <= values.length ? { of, at: values.map((v) => of.indexOf(v)) } : values;
  };
  const said = (kind: Run["kind"]) => (kind === "done" ? null : kind === "refused" ? 'switch.sw0.link: unsupported generation "gen9"' : "the run got <b>nowhere</b>");
  return {
    schema: SCHEMA, title, about: "How wide an uplink has to be.", finding: { says: `${title} say that it is <b>enough</b>.`, holds: true }, changed: [], left_out: [["small", 2]], axes, figures, every: true,
    rows: runs.length,
    columns: {
      point: column(runs.map((r) => r.point)), seed: column(runs.map((r) => r.seed)), kind: column(runs.map((r) => r.kind)), message: column(runs.map((r) => said(r.kind))), limit: { all: null },
      axes: axes.map((_, a) => column(runs.map((r) => r.values[a]!))), figures: figures.map((_, f) => column(runs.map((r) => r.figures[f]!))),
    },
    command: { head: "tlplab run one.toml --set stop=60us", sets: axes.map((axis, a) => column(runs.map((r) => `--set '${axis.name}="${r.values[a]}"'`))) },
    ...more,
  };
}

const FIGURES: StudyDocument["figures"] = [
  { name: "throughput", unit: "b/s", more: true, shown: true },
  { name: "nic.latency.p99", unit: "ns", more: false, shown: true },
  { name: "lanes", unit: "1", more: false, shown: false },
];

/** Uplinks, rates and tags; three runs of each point, of which one kind is refused. */
function uplinks(): StudyDocument {
  const runs: Run[] = [];
  let point = 0;
  LINKS.forEach((link, l) => [5e9, 10e9, 20e9, 40e9].forEach((rate, r) => [8, 16, 32, 64, 128].forEach((tags, t) => {
    const refused = link === "gen9 x8";
    for (let seed = 1; seed <= (refused ? 1 : 3); seed++) {
      const bits = Math.min(rate, (l + 1) * 14e9, tags * 1e9) + seed * 1e8;
      runs.push({ point, values: [link, rate, tags], seed: refused ? null : seed, kind: refused ? "refused" : "done", figures: refused ? [null, null, null] : [bits, 300 + (rate * (4 - l)) / tags / 1e6 + 10 * r + t + seed, 4 * (l + 1)] });
    }
    point++;
  })));
  return studyOf("Uplinks", [{ name: "uplink", unit: null }, { name: "rate", unit: "b/s" }, { name: "tags", unit: "1" }], FIGURES, runs);
}

/** A point for each size: a saw-tooth. */
function sizes(): StudyDocument {
  const runs = Array.from({ length: 375 }, (_, i): Run => {
    const size = 64 + 4 * i;
    return { point: i, values: [size], seed: 1, kind: "done", figures: [(64e9 * size) / (size + 24 * Math.ceil(size / 256)), 100 + size, 4] };
  });
  return studyOf("Sizes", [{ name: "size", unit: "B" }], FIGURES, runs, { finding: null, changed: ["--set stop=60us"], every: false });
}

/** Ten thousand points. */
function many(): StudyDocument {
  const runs: Run[] = [];
  for (let point = 0; point < 10_000; point++) {
    const [size, rate, l] = [64 + 6 * (point % 250), 5e9 * (1 + (Math.floor(point / 250) % 10)), Math.floor(point / 2500)];
    const wave = Math.sin(point * 12.9898) * 1000;
    runs.push({ point, values: [size, rate, `gen4 x${2 ** l}`], seed: 1, kind: "done", figures: [Math.min(rate, 14e9 * 2 ** l) * (1 + 0.01 * (wave % 1)), 300 + (50 * (wave % 1)) ** 2 + rate / 1e8, 2 ** l] });
  }
  return studyOf("Many", [{ name: "size", unit: "B" }, { name: "rate", unit: "b/s" }, { name: "uplink", unit: null }], FIGURES, runs);
}

/** With the report of one point in the page. */
function reports(): StudyDocument {
  const page = readFileSync(join(process.env["REPORT_ROOM"] ?? ".", "dist/report.html"), "utf8");
  const pack = (text: string) => gzipSync(text).toString("base64");
  const [before, after] = page.split("/*TLPLAB_RESULT*/") as [string, string];
  return { ...uplinks(), reports: { viewer: [pack(before), pack(after)], results: { "2": pack(JSON.stringify(CASES["quickstart"]!())) } } };
}

const one = (): StudyDocument => studyOf("One point", [], FIGURES, [{ point: 0, values: [], seed: 7, kind: "done", figures: [1e9, 500, 4] }]);
const none = (): StudyDocument => studyOf("Failed", [{ name: "tags", unit: "1" }], FIGURES, [1, 2].map((tags, point) => ({ point, values: [tags], seed: 1, kind: "failed", figures: [null, null, null] })), { finding: { says: "It holds.", holds: false } });

export const STUDIES: Record<string, () => StudyDocument> = { uplinks, sizes, many, reports, one, none };

/** The built page with a study in it, as `tlplab sweep --html` writes it. */
export function fillStudy(study: StudyDocument): string {
  const page = readFileSync(join(process.env["REPORT_ROOM"] ?? ".", "../python/tlplab/study/study.html"), "utf8");
  return page.replace("/*TLPLAB_RESULT*/", () => JSON.stringify(study).replaceAll("<", "\\u003c"));
}
