/**
 * The result document: what `tlplab run --json` writes and this page shows. Its types, in `document.ts`, are generated from the simulator's own.
 *
 * Times that end in `_fs` are femtoseconds of simulated time (exact below 9 s, where a double still counts every one), times in
 * `_ns` are nanoseconds, rates are bits per second. A *place* is either a link direction, written `from → to` exactly as in
 * {@link Direction} `from` and `to`, or the name of a node. Arrays in {@link Series} have `bins` entries.
 */
import { SCHEMA, type Result } from "./document";

export * from "./document";

/** Reads the document from the page. Errors say what is wrong in words for people. */
export function readResult(text: string): Result {
  const trimmed = text.trim();
  if (trimmed === "" || trimmed.startsWith("/*")) {
    throw new Error("This page holds no result yet. Write one with: tlplab run EXPERIMENT.toml --report run.html");
  }
  let value: unknown;
  try {
    value = JSON.parse(trimmed);
  } catch (e) {
    throw new Error(`The result in this page is not valid JSON (${(e as Error).message}). Was the file cut short?`);
  }
  const schema = (value as Result | null)?.schema;
  if (schema !== SCHEMA) {
    throw new Error(`The result's schema is ${JSON.stringify(schema)}, this page reads "${SCHEMA}". Use the page of the same tlplab version.`);
  }
  return value as Result;
}
