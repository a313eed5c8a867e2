/** The transactions that the document has one by one: those of the sample, and those with packets in the ladder. */
import type { Ending, Ladder, Packet, Result, Transaction } from "./result";

export interface Listed {
  flow: number;
  start_fs: number;
  latency_ns: number;
  links: number[];
  /** What its request is in the ladder (`MRd`), else what its flow does (`read`). */
  kind: string;
  address: string | null;
  bytes: number | null;
  /** The function that sent its requests. */
  requester: string | null;
  /** The tag of the request that brought its last byte; of one that is in the ladder only, of its last request there. Posted requests have none. */
  tag: number | null;
  ending: Ending;
  /** Its latency by cause (nanoseconds). */
  causes_ns: number[];
  /** Its number in the ladder, and how many packets it has there; null where it has none. */
  transaction: number | null;
  packets: number;
}

/** How much of the run that is. */
export interface Told {
  /** In the sample, and how many it was taken from: those that ended well. */
  sampled: number;
  ended: number;
  /** Transactions that did not end well: only those with packets in the ladder are known. */
  failed: number;
  /** With packets in the ladder. */
  laddered: number;
  /** Have packets in the ladder, but the document does not tell their latency. */
  open: number;
}

/** All of them in the order of their start; one that is both in the sample and in the ladder is there once. */
export function listed(result: Result): Listed[] {
  const rows = result.ladder ? ladderRows(result, result.ladder) : [];
  const known = new Map<string, Listed[]>();
  for (const row of rows) append(known, keyOf(row), row);
  for (const s of result.samples) {
    const same = known.get(keyOf(s))?.pop();
    const own = { requester: s.requester ?? null, tag: s.tag ?? null };
    if (same) Object.assign(same, own, { links: [...new Set([...same.links, ...s.links])] });
    else rows.push({ ...s, ...own, kind: s.access ?? result.flows[s.flow]?.op ?? "?", address: s.address ?? null, bytes: s.bytes ?? null, ending: "done", transaction: null, packets: 0 });
  }
  return rows.sort((a, b) => a.start_fs - b.start_fs || a.flow - b.flow);
}

/** To the femtosecond: a nanosecond has six decimals in the document. */
const keyOf = (t: { flow: number; start_fs: number; latency_ns: number }): string => `${t.flow}/${t.start_fs}/${Math.round(t.latency_ns * 1e6)}`;

function append<K, V>(lists: Map<K, V[]>, key: K, value: V): void {
  const list = lists.get(key);
  if (list) list.push(value);
  else lists.set(key, [value]);
}

function ladderRows(result: Result, ladder: Ladder): Listed[] {
  const packets = new Map<number, Packet[]>();
  for (const p of ladder.packets) if (p.transaction !== null) append(packets, p.transaction, p);
  const places = new Map<string, number>(result.links.flatMap((l, i) => l.directions.map((d) => [`${d.from} → ${d.to}`, i] as const)));
  return ladder.transactions.map((t): Listed => {
    const own = packets.get(t.id) ?? [];
    const crossed = [...own.map((p) => p.link), ...t.intervals.flatMap((i) => places.get(i.place) ?? [])];
    return {
      flow: t.flow, start_fs: t.start_fs, latency_ns: (t.end_fs - t.start_fs) / 1e6, links: [...new Set(crossed)], ...readText(t, own),
      ending: t.ending, causes_ns: result.causes.map((_, k) => t.intervals.reduce((sum, i) => sum + (i.cause === k ? i.duration_fs : 0), 0) / 1e6),
      transaction: own.length > 0 ? t.id : null, packets: own.length,
    };
  });
}

/** "write of 4096 B at 0x1000". */
function readText(t: Transaction, packets: Packet[]): Pick<Listed, "kind" | "bytes" | "address" | "requester" | "tag"> {
  const [, verb, bytes, address] = /^(\w+) of (\d+) B at (0x[0-9a-f]+)$/.exec(t.text) ?? [];
  const requests = packets.filter((p) => p.role === "read" || p.role === "write");
  const completed = packets.filter((p) => p.role === "completion").at(-1) ?? requests.filter((p) => p.role === "read").at(-1);
  return {
    kind: requests[0]?.kind ?? verb ?? "?", bytes: bytes ? Number(bytes) : null, address: address ?? null,
    requester: packets.find((p) => p.header)?.header?.requester ?? null, tag: completed?.tag ?? null,
  };
}

export function told(result: Result): Told {
  const sum = (xs: number[]) => xs.reduce((a, b) => a + b, 0);
  const known = new Set(result.ladder?.transactions.map((t) => t.id));
  const inLadder = new Set(result.ladder?.packets.flatMap((p) => p.transaction ?? []));
  return {
    sampled: result.samples.length, ended: sum(result.flows.map((f) => f.transactions)),
    failed: sum(result.flows.flatMap((f) => Object.values(f.errors))),
    laddered: [...inLadder].filter((id) => known.has(id)).length, open: [...inLadder].filter((id) => !known.has(id)).length,
  };
}

/** The transaction of a flow that ended well with the latency nearest to this one, by its place in `among`; null if there is none. Of equally near ones one in the ladder. */
export function nearest(rows: readonly Listed[], among: readonly number[], flow: number, latency_ns: number): number | null {
  let best: number | null = null;
  const away = (i: number) => Math.abs(rows[i]!.latency_ns - latency_ns);
  for (const i of among) {
    const row = rows[i]!;
    if (row.flow !== flow || row.ending !== "done") continue;
    const closer = best === null ? 1 : away(best) - away(i);
    if (closer > 0 || (closer === 0 && row.transaction !== null && rows[best!]!.transaction === null)) best = i;
  }
  return best;
}

/** The cause that took most of a transaction's time; null where none is known. */
export function mostly(row: Listed): { cause: number; share: number } | null {
  const all = row.causes_ns.reduce((a, b) => a + b, 0);
  const cause = row.causes_ns.reduce((most, ns, k) => (ns > row.causes_ns[most]! ? k : most), 0);
  return all > 0 ? { cause, share: row.causes_ns[cause]! / all } : null;
}

/** What has a value of `ladder.at` keep a transaction's packets: where it begins, in whole nanoseconds. */
export const ladderAt = (row: Listed): string => `ladder.at=${Math.floor(row.start_fs / 1e6)}ns`;
