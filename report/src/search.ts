/**
 * Search in the ladder and in the table of transactions. Words stand for packets or transactions that match all of them: a kind (`MRd`, `Cpl`: also its beginning), a flow, the status of a
 * completion, an address (`0x1000`, `0x1000-0x1fff`), a tag (`tag 0x1f`), a function (`04:00.0`, or its beginning, `04:`).
 */
import { field } from "./ladder_layout";
import type { Ladder, Packet, Result } from "./result";
import type { Listed } from "./transactions";

/** A packet or a transaction as it is searched. */
export interface Searched {
  kind: string;
  flow: string;
  words: string[];
  tag: number | null;
  /** The doublewords of a memory or I/O request: the first byte and the one behind the last. */
  from: bigint | null;
  to: bigint;
  functions: string[];
}

interface Entry extends Searched {
  id: number;
}

export interface Query {
  /** How the words were read, for people. */
  read: string;
  /** Why they cannot be searched for. */
  problem: string | null;
  fits: (e: Searched) => boolean;
}

const FUNCTION = /^(?:[0-9a-f]{4}:)?([0-9a-f]{2}:(?:[0-9a-f]{0,2}|[0-9a-f]{2}\.[0-7]?))$/i;
const ADDRESS = /^(0x[0-9a-f]+)(?:-(0x[0-9a-f]+))?$/i;

export const entriesOf = (result: Result, ladder: Ladder): Entry[] => ladder.packets.map((p) => entryOf(result, p));

function entryOf(result: Result, p: Packet): Entry {
  const told = (name: string) => (p.role ? field(p, name) : "");
  const header = p.header ?? null;
  const address = header ? header.address : told("addr");
  const from = address ? BigInt(address) : null;
  const length = header?.length ?? Number(told("len") || 0);
  const states = [p.bad && "corrupted", p.replay && "replayed", p.nullified && "nullified"];
  return {
    id: p.id, kind: p.kind.toLowerCase(), flow: p.flow === null ? "" : (result.flows[p.flow]?.name ?? "").toLowerCase(), tag: p.tag,
    words: [header?.status, p.outcome, ...states].flatMap((w) => (w ? [w.toLowerCase()] : [])),
    from, to: (from ?? 0n) + BigInt(Math.max(1, length) * 4),
    functions: header ? [header.requester, header.completer, header.function].flatMap((f) => f ?? []) : ["requester", "completer"].flatMap((f) => told(f) || []),
  };
}

/** A transaction as it is searched: by its whole length, and by what its packets in the ladder tell beside. */
export function transactionEntry(result: Result, t: Listed): Searched {
  const from = t.address === null ? null : BigInt(t.address);
  return {
    kind: t.kind.toLowerCase(), flow: (result.flows[t.flow]?.name ?? "").toLowerCase(), tag: t.tag, words: [t.ending], from, to: (from ?? 0n) + BigInt(Math.max(1, t.bytes ?? 1)),
    functions: t.requester === null ? [] : [t.requester],
  };
}

/** Reads what was typed; null where it is empty. */
export function readQuery(text: string): Query | null {
  const words = text.trim().replace(/(^|\s)tag\s*[:= ]\s*/gi, "$1tag:").split(/\s+/).filter((w) => w !== "");
  if (words.length === 0) return null;
  const terms = words.map(readTerm);
  return {
    read: terms.map((t) => t.read).join(", "),
    problem: terms.find((t) => t.problem)?.problem ?? null,
    fits: (e) => terms.every((t) => t.fits(e)),
  };
}

function readTerm(word: string): Query {
  const good = (read: string, fits: Query["fits"]): Query => ({ read, problem: null, fits });
  const bad = (problem: string): Query => ({ read: word, problem, fits: () => false });
  const lower = word.toLowerCase();
  if (/^tag:?$/.test(lower)) return bad("A tag is a number: tag 0x1f or tag 31.");
  if (lower.startsWith("tag:")) {
    const digits = lower.slice(4);
    const tag = /^(0x[0-9a-f]+|\d+)$/.test(digits) ? Number(digits) : NaN;
    return Number.isNaN(tag) ? bad(`“${digits}” is no number of a tag: write tag 0x1f or tag 31.`) : good(`tag 0x${tag.toString(16)}`, (e) => e.tag === tag);
  }
  const [, first, last] = ADDRESS.exec(lower) ?? [];
  if (first) {
    const [from, to] = [BigInt(first), BigInt(last ?? first)];
    if (to < from) return bad(`${last} is before ${first}.`);
    return good(`address ${lower}`, (e) => e.from !== null && e.from <= to && e.to > from);
  }
  if (lower.startsWith("0x")) return bad(`“${word}” is no address: hexadecimal digits follow 0x, as in 0x1000 or 0x1000-0x1fff.`);
  const named = FUNCTION.exec(lower)?.[1];
  if (named) return good(`function ${named}`, (e) => e.functions.some((f) => f.startsWith(named)));
  return good(`kind, flow or state “${word}”`, (e) => e.kind.startsWith(lower) || e.flow.includes(lower) || e.words.includes(lower));
}

/** The packets, by id, that match. */
export const search = (entries: Entry[], query: Query | null): Set<number> =>
  new Set(query && !query.problem ? entries.filter(query.fits).map((e) => e.id) : []);

/** The next of these places, or the one before, round about; null where there are none. */
export function nextOf(places: readonly number[], at: number, step: 1 | -1): number | null {
  if (places.length === 0) return null;
  if (step > 0) return places.find((p) => p > at) ?? places[0]!;
  return places.filter((p) => p < at).pop() ?? places[places.length - 1]!;
}
