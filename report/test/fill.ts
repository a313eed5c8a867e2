/** Puts a result into the built page, as `tlplab run --report` does. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Result } from "../src/result";
export { CASES } from "./cases";

const page = () => readFileSync(join(process.env["REPORT_ROOM"] ?? ".", "dist/report.html"), "utf8");

export function fill(result: Result): string {
  const json = JSON.stringify(result, (_, v: unknown) => (typeof v === "number" && !Number.isInteger(v) ? Number(v.toPrecision(6)) : v));
  return page().replace("/*TLPLAB_RESULT*/", () => json.replaceAll("<", "\\u003c"));
}
