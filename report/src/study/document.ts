/** What a page of a study holds: columns of its runs, how they are called, and how to run a point again. The place to begin reading. */

export const SCHEMA = "tlplab/study-page/1";

/** A value of an axis. */
export type Value = number | string | boolean;

/** A column: the same everywhere, a number into a list of values for each row, or the values themselves. */
export type Column<T> = { all: T } | { of: T[]; at: number[] } | T[];

/** Of a figure that is known of points, not of runs: mean and half of its interval. */
export interface Means {
  means: ([mean: number, half: number | null] | null)[];
}

export interface Axis {
  name: string;
  /** Null for texts and for what is true or false. */
  unit: string | null;
}

export interface Figure {
  name: string;
  unit: string;
  /** Whether more of it is better; null where nobody can say. */
  more: boolean | null;
  /** Whether the study shows it. */
  shown: boolean;
}

export interface StudyDocument {
  schema: string;
  title: string;
  /** What the study asks, from the head of its file. */
  about: string;
  finding: { says: string; holds: boolean } | null;
  /** How the study was changed on the command line, if it was. */
  changed: string[];
  left_out: [string, number][];
  axes: Axis[];
  figures: Figure[];
  /** Whether every figure is here, or only those that the study shows. */
  every: boolean;
  /** How many runs there are. Columns have so many rows; those of one point follow each other. */
  rows: number;
  columns: {
    point: Column<number>;
    seed: Column<number | null>;
    kind: Column<"done" | "failed" | "refused">;
    message: Column<string | null>;
    limit: Column<string | null>;
    axes: Column<Value>[];
    figures: (Column<number | null> | Means)[];
  };
  /** The command that runs a point by itself: what all have in common, and what each adds, row by row. Quoted for a shell. Closed forms and benchmarks have none. */
  command: { head: string; sets: Column<string>[] } | null;
  /** The reports of points, where they are in the page: gzip, base64. */
  reports?: { viewer: [before: string, after: string]; results: Record<string, string> };
}

/** The value of a column in each row. */
export function expand<T>(column: Column<T>, rows: number): T[] {
  if (Array.isArray(column)) return column;
  return "all" in column ? new Array<T>(rows).fill(column.all) : column.at.map((i) => column.of[i]!);
}

/** Reads the document from the page. Errors say what is wrong in words for people. */
export function readStudy(text: string): StudyDocument {
  const trimmed = text.trim();
  if (trimmed === "" || trimmed.startsWith("/*")) {
    throw new Error("This page holds no study yet. Write one with: tlplab sweep STUDY.toml --html study.html");
  }
  let value: unknown;
  try {
    value = JSON.parse(trimmed);
  } catch (e) {
    throw new Error(`The study in this page is not valid JSON (${(e as Error).message}). Was the file cut short?`);
  }
  const schema = (value as StudyDocument | null)?.schema;
  if (schema !== SCHEMA) {
    throw new Error(`The study's schema is ${JSON.stringify(schema)}, this page reads "${SCHEMA}". Use the page of the same tlplab version.`);
  }
  return value as StudyDocument;
}
