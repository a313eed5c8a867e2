/**
 * Invented results for looking at the page and for its tests. The ladder comes from a small first-in first-out model, so that
 * packets follow each other as they would; the other figures are plausible, not measured.
 */
import {
  CAUSES, SCHEMA, type Attribution, type Bar, type Direction, type Flow, type Ladder, type Latency, type Link, type Node, type Resource,
  type Packet, type Result, type Sample, type Transaction, type Utilization,
} from "../src/result";

import { spaces } from "./spaces";

/** A reproducible stream of numbers in 0..1 (mulberry32). */
function random(seed: number): () => number {
  let s = seed >>> 0;
  return () => {
    s = (s + 0x6d2b79f5) >>> 0;
    let t = Math.imul(s ^ (s >>> 15), 1 | s);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

export interface DeviceSpec {
  name: string;
  under: string;
  op: "read" | "write";
  size: number;
  share: number;
  gen?: number;
  width?: number;
}

export interface MockSpec {
  title: string;
  switches: { name: string; under: string; gen?: number; width?: number }[];
  devices: DeviceSpec[];
  bins?: number;
  samples?: number;
  ladder?: boolean;
  packets?: number;
  empty?: boolean;
  /** Samples tell places. */
  parts?: boolean;
  limitLink?: string;
}

const END = 200e9;

export function mock(spec: MockSpec): Result {
  const rnd = random(7);
  const bins = spec.empty ? 0 : (spec.bins ?? 200);
  const ports = [...new Set([...spec.switches, ...spec.devices].map((x) => x.under).filter((u) => u.startsWith("host.")))];
  const nodes: Node[] = [
    { name: "host", kind: "host", model: null, parent: null, detail: "ideal memory, RCB 64 B" },
    ...ports.map((name): Node => ({ name, kind: "root port", model: null, parent: "host", detail: "" })),
    ...spec.switches.map((s): Node => ({ name: s.name, kind: "switch", model: null, parent: s.under, detail: "cut-through, 150 ns" })),
    ...spec.devices.map((d): Node => ({ name: d.name, kind: "device", model: "dma", parent: d.under, detail: `${d.op} ${d.size} B` })),
  ];
  const links: Link[] = [...spec.switches, ...spec.devices].map((c, i) => link(c.name, c.under, c.gen ?? 4, c.width ?? 4, i));
  const parents = new Map(nodes.map((n) => [n.name, n.parent]));
  const wayUp = (name: string): number[] => {
    const out: number[] = [];
    for (let at: string | null | undefined = name; at; at = parents.get(at)) {
      const i = links.findIndex((l) => l.lower === at);
      if (i >= 0) out.push(i);
    }
    return out;
  };
  const ways = spec.devices.map((d) => wayUp(d.name));

  // Load per link direction, then the occupation over time that goes with it.
  const up = links.map((l, i) => Math.min(0.93, sum(spec.devices.map((d, k) => (d.op === "write" && ways[k]!.includes(i) ? d.share * 28.73e9 : 0))) / l.raw_bps));
  const down = links.map((l, i) => Math.min(0.93, sum(spec.devices.map((d, k) => (d.op === "read" && ways[k]!.includes(i) ? d.share * 28.73e9 : 0))) / l.raw_bps));
  const series: Result["series"] = { start_fs: 0, bin_fs: bins ? END / bins : 0, bins, flows: [], directions: [], resources: [] };
  links.forEach((l, i) => {
    [up[i]!, down[i]!].forEach((load, direction) => {
      const other = direction === 0 ? down[i]! : up[i]!;
      const wave = Array.from({ length: bins }, (_, b) => Math.min(1, (b < 4 ? b / 4 : 1) * (0.94 + 0.08 * rnd()) * (b > bins * 0.6 && b < bins * 0.68 ? 0.4 : 1)));
      const dip = (b: number) => (b > bins * 0.6 && b < bins * 0.68 ? 1 : 0);
      series.directions.push({
        link: i, direction,
        payload: wave.map((w) => load * 0.985 * w),
        overhead: wave.map((w) => (load * 0.0937 + other * 0.02) * w),
        dllp: wave.map((w) => (0.004 + other * 0.03) * w),
        ordered_sets: wave.map(() => 0.00266),
        replay: wave.map((_, b) => dip(b) * load * 0.35),
      });
      l.directions[direction]!.utilization = meanUse(series.directions[series.directions.length - 1]!, bins, load);
      fillCounts(l.directions[direction]!, load, l, direction === 0 ? 0.31 * load : 0.05);
    });
  });

  const flows: Flow[] = spec.devices.map((d, k) => flow(d, k, spec, links, ways[k]!, rnd));
  if (bins) {
    flows.forEach((f, k) => {
      const way = series.directions.find((x) => x.link === ways[k]![0] && x.direction === (f.op === "write" ? 0 : 1))!;
      const scale = (f.payload_bps * (END / 1e15)) / 8 / Math.max(1e-9, sum(way.payload));
      const outstanding_mean = way.payload.map((p, b) => (4 + 3 * Math.sin(b / 9 + k)) * (p > 0 ? 1 : 0));
      series.flows.push({ flow: k, bytes: way.payload.map((p) => Math.round(p * scale)), outstanding_mean, outstanding_max: outstanding_mean.map((m) => Math.ceil(m) + 1) });
    });
    resources(series, links, spec, rnd);
  }
  const places = links.flatMap((l) => l.directions.map((d) => `${d.from} → ${d.to}`));
  const samples = spec.empty ? [] : makeSamples(flows, ways, spec.samples ?? 1500, rnd, spec.parts ?? true);
  const ladder = spec.ladder === false || spec.empty ? null : makeLadder(spec, links, ways, spec.packets ?? 600);
  const limited = Math.max(0, links.findIndex((l) => l.name === (spec.limitLink ?? links[0]?.name)));
  const dir = links[limited]!.directions[0];
  const place = `${dir.from} → ${dir.to}`;
  return {
    schema: SCHEMA, title: spec.title, version: "0.1.0", seed: 1, experiment: toml(spec), settings: {}, trace_hash: "9f3c2a7be41d0586",
    start_fs: 0, end_fs: END, stop_reason: "stop-time", stop_text: "the stop time", waiting: [], problems: [],
    verdict: spec.empty
      ? { sentence: "Nothing limits the run: no transaction was started.", limit: { resource: "none", kind: "none", utilization: 0, evidence: [], links: [], gain: null, change: null }, next: null, limits: [], phases: [], tried: null }
      : {
          sentence: `The link ${place} limits the run: its wire is busy 99.7 % of the time, and ${flows[0]!.name} and the flows beside it wait for each other there.`,
          limit: {
            resource: `link ${place}`, kind: "link", utilization: 0.997, links: [limited], gain: 0.41, change: "x4 → x8",
            evidence: [
              `${place} carries TLPs 98.9 % of the time, DLLPs and ordered sets 0.8 %.`,
              `${flows[0]!.name} spends 61 % of its latency queueing at ${place}, nearly all of it behind other flows.`,
              "No credits, tags or replay buffer ran out for more than 0.4 % of the time.",
            ],
          },
          next: { resource: "outstanding requests of ssd", kind: "outstanding", headroom: 0.41, text: "With a wider link, the 32 outstanding requests of ssd would limit next, at 1.41 times today's throughput." },
          limits: [{ resource: `link ${place}`, kind: "link", utilization: 0.997, links: [limited], evidence: [], gain: 0.41, change: "x4 → x8" }], phases: [],
          tried: {
            candidates: 31, tried: 29, events: 2_100_000, until_fs: null,
            gains: [
              { resource: `link ${place}`, kind: "link", change: "x4 → x8", gain: 0.41 },
              { resource: "tags of ssd", kind: "tags", change: "32 → 64", gain: 0.02 },
              { resource: "the outstanding of nic", kind: "outstanding", change: "16 → 32", gain: -0.1 },
            ],
          },
        },
    guest: null, measured: [], networks: [], host: null, translations: [],
    config_spaces: spec.empty ? null : spaces(spec.devices.map((d) => d.name), END),
    places, flows, causes: CAUSES, topology: { nodes }, links, series, samples, ladder,
    errors: spec.empty ? [] : [{ name: "Surprise Down", port: place, count: 1, first_fs: END / 4, header: null, message: "ERR_FATAL", messages: 1 }],
    reported: spec.empty ? [] : [{ port: "host.rp0", source: "02:00.0", message: "ERR_FATAL", count: 1, first_fs: END / 4, interrupts: 1 }],
    faults: spec.empty ? [] : [{ link: links[0]!.name, direction: "up", damage: "lose", of: null, first: 5, struck: 1 }],
    outages: spec.empty ? [] : [{ link: links[0]!.name, down_fs: END / 4, heard_fs: END / 4, up_fs: END / 2, configured_fs: null }],
  };
}

const sum = (xs: number[]): number => xs.reduce((a, b) => a + b, 0);

function link(name: string, upper: string, generation: number, width: number, i: number): Link {
  const gts = [0, 2.5, 5, 8, 16, 32, 64, 128][generation]!;
  const raw = gts * 1e9 * width * (generation < 3 ? 0.8 : generation < 6 ? 128 / 130 : 1);
  const direction = (from: string, to: string, n: number): Direction => ({
    from, to, interface: n, utilization: { payload: 0, overhead: 0, dllp: 0, ordered_sets: 0, replay: 0, idle: 1 }, tlps: 0, payload_bytes: 0,
    dllps: { ack: 0, nak: 0, update_fc: 0, init_fc: 6, other: 0, worked_out: 0 }, replayed: 0, nullified: 0, replay_timeouts: 0, bad_lcrc: 0, no_room: 0,
    stalls: { credits: 0, tags: 0, replay_buffer: 0 },
  });
  return {
    name, upper, lower: name, generation, width, mode: generation >= 6 ? "flit" : "non-flit", mps: 256, raw_bps: raw, bus: null,
    directions: [direction(name, upper, 2 * i), direction(upper, name, 2 * i + 1)],
  };
}

function meanUse(d: Result["series"]["directions"][number], bins: number, load: number): Utilization {
  if (!bins) return { payload: 0, overhead: 0, dllp: 0, ordered_sets: 0.00266, replay: 0, idle: 0.99734 };
  const m = (xs: number[]) => sum(xs) / bins;
  const u = { payload: m(d.payload), overhead: m(d.overhead), dllp: m(d.dllp), ordered_sets: m(d.ordered_sets), replay: m(d.replay), idle: 0 };
  u.idle = Math.max(0, 1 - u.payload - u.overhead - u.dllp - u.ordered_sets - u.replay);
  return load >= 0 ? u : u;
}

function fillCounts(d: Direction, load: number, l: Link, stall: number): void {
  d.payload_bytes = Math.round((d.utilization.payload * l.raw_bps * END) / 8e15);
  d.tlps = Math.round(d.payload_bytes / 240);
  d.dllps = { ack: Math.round(d.tlps / 5), nak: load > 0.5 ? 3 : 0, update_fc: Math.round(d.tlps / 9), init_fc: 6, other: 0, worked_out: 0 };
  d.replayed = load > 0.5 ? 41 : 0;
  d.bad_lcrc = load > 0.5 ? 3 : 0;
  d.stalls = { credits: stall * 0.2, tags: 0, replay_buffer: stall * 0.01 };
}

const LOGNORMAL = (rnd: () => number) => Math.exp((rnd() + rnd() + rnd() + rnd() - 2) * 0.9);

function split(latency: number, base: number, op: string): number[] {
  const wait = Math.max(0, latency - base);
  const out = [0.22, 0.33, 0.1, 0, 0, 0, 0, 0, 0.02, 0.33, 0].map((x) => x * Math.min(base, latency));
  if (op === "write") [out[1], out[9]] = [out[1]! + out[9]! * 0.8, out[9]! * 0.2];
  out[3] = wait * 0.78;
  out[4] = wait * 0.11;
  out[5] = op === "read" ? wait * 0.08 : 0;
  out[6] = op === "read" ? 0 : wait * 0.03;
  out[7] = wait * 0.05;
  out[8] = out[8]! + wait * (op === "read" ? -0.02 : 0.03);
  return out;
}

function flow(d: DeviceSpec, k: number, spec: MockSpec, links: Link[], way: number[], rnd: () => number): Flow {
  const bps = spec.empty ? 0 : d.share * 28.73e9;
  const bytes = (bps * END) / 8e15;
  const base = 320 + way.length * 190;
  const draws = Array.from({ length: spec.empty ? 0 : 4000 }, () => base * (0.95 + 0.2 * rnd()) + (d.share > 0.3 ? 2600 * d.share : 400) * LOGNORMAL(rnd) * (0.6 + rnd())).sort((a, b) => a - b);
  const at = (q: number) => draws[Math.min(draws.length - 1, Math.floor(q * draws.length))]!;
  const latency: Latency | null = draws.length
    ? { min: draws[0]!, mean: sum(draws) / draws.length, p50: at(0.5), p90: at(0.9), p99: at(0.99), p999: at(0.999), max: draws[draws.length - 1]! }
    : null;
  const histogram: Bar[] = [];
  for (let from = 2 ** 17, width = 2 ** 12; draws.length && from <= latency!.max * 1e6; from += width) { // 32 steps per octave of fs
    if (from === 64 * width) width *= 2;
    const inside = draws.filter((x) => x * 1e6 >= from && x * 1e6 < from + width);
    if (inside.length === 0) continue;
    histogram.push({ from_ns: from / 1e6, to_ns: (from + width) / 1e6, count: inside.length * 3, causes_ns: split(sum(inside) / inside.length, base, d.op) });
  }
  const place = (i: number) => links[i]!.directions[d.op === "write" ? 0 : 1]!;
  const name = (i: number) => `${place(i).from} → ${place(i).to}`;
  const last = way[way.length - 1]!;
  const neighbour = spec.devices[(k + 1) % spec.devices.length]!.name;
  const parts: [number, string, string | null, number][] = [
    [3, name(last), neighbour === d.name ? null : neighbour, 0.47], [3, name(last), d.name, 0.14], [1, name(way[0]!), null, 0.12],
    [1, name(last), null, 0.08], [9, "host", null, 0.06], [0, links[last]!.lower, null, 0.05], [4, name(last), null, 0.05], [2, name(way[0]!), null, 0.02],
    [7, name(way[0]!), null, 0.008], [8, name(last), null, 0.002],
  ];
  const total = (latency?.mean ?? 0) * 12000;
  const attribution: Attribution[] = spec.empty ? [] : parts.map(([cause, p, behind, share]) => ({ cause, place: p, behind, share, total_ns: share * total }));
  return {
    name: d.name, device: d.name, op: d.op, target: "host", transactions: Math.round(bytes / d.size), bytes: Math.round(bytes), payload_bps: bps,
    errors: { ur: 0, ca: 0, timeout: k === 1 ? 2 : 0, poisoned: 0, lost: k === 1 ? 7 : 0, malformed: 0 }, latency_ns: latency, histogram, attribution, failures: [],
  };
}

function makeSamples(flows: Flow[], ways: number[][], n: number, rnd: () => number, parts: boolean): Sample[] {
  return Array.from({ length: n }, (_, i) => {
    const k = Math.floor(rnd() * flows.length);
    const f = flows[k]!;
    const latency = f.latency_ns!.p50 * LOGNORMAL(rnd);
    const causes = split(latency, f.latency_ns!.min, f.op).map((c) => Math.max(0, c));
    const told = { transaction: 100_000 + i, access: f.op === "write" ? "write" : "read", address: `0x${(0x4000_0000 + k * 0x100_0000 + i * 4096).toString(16)}`, bytes: 4096, requester: `0${k + 2}:00.0`, tag: f.op === "write" ? null : i % 32 } as const;
    const sample: Sample = { ...told, flow: k, start_fs: Math.round(((i + rnd()) / n) * END * 0.97), latency_ns: latency, links: ways[k]!, causes_ns: causes };
    const direction = f.op === "write" ? 0 : 1;
    const place = (cause: number) => 2 * (cause === 1 || cause === 4 ? ways[k]![0]! : ways[k]![ways[k]!.length - 1]!) + direction;
    if (parts) sample.parts = causes.flatMap((ns, cause): [number, number, number, number][] => (ns > 0 ? [[cause, place(cause), cause === 3 ? (k + 1) % flows.length : -1, ns]] : []));
    return sample;
  });
}

function resources(series: Result["series"], links: Link[], spec: MockSpec, rnd: () => number): void {
  const add = (name: string, kind: Resource["kind"], unit: string, capacity: number | null, level: number, l: number | null, direction: number | null) => {
    const mean = Array.from({ length: series.bins }, (_, b) => (capacity ?? 40) * Math.min(1, level * (b < 4 ? b / 4 : 1) * (0.9 + 0.2 * rnd())));
    series.resources.push({ name, kind, link: l, direction, capacity, unit, mean, max: mean.map((m) => Math.min(capacity ?? 1e9, Math.ceil(m * 1.25))) });
  };
  spec.devices.forEach((d) => add(`tags of ${d.name}`, "tags", "tags", 32, d.op === "read" ? 0.8 : 0.02, links.findIndex((l) => l.name === d.name), null));
  links.forEach((l, i) => {
    const way = `${l.directions[0].from} → ${l.directions[0].to}`;
    add(`posted data credits ${way}`, "credits", "credits", 512, 0.2 + 0.5 * rnd(), i, 0);
    add(`egress queue ${way}`, "buffer", "TLPs", null, 0.5 * rnd(), i, 0);
    add(`replay buffer ${way}`, "replay", "bytes", 4096, 0.3 + 0.3 * rnd(), i, 0);
  });
}

/** Writes and reads through first-in first-out wires, with an Ack for every fourth TLP and an UpdateFC for every sixth. */
function makeLadder(spec: MockSpec, links: Link[], ways: number[][], limit: number): Ladder {
  const packets: Packet[] = [];
  const transactions: Transaction[] = [];
  const free = new Map<string, number>();
  const sequence = new Map<string, number>();
  const from = 60e9;
  const ids = spec.devices.map((_, k) => `${(k + 1).toString(16).padStart(2, "0")}:00.0`);
  const send = (l: number, direction: number, at: number, bytes: number, p: Partial<Packet>): Packet => {
    const key = `${l}/${direction}`;
    const start = Math.max(at, free.get(key) ?? 0);
    const end = start + (bytes * 8e15) / links[l]!.raw_bps;
    free.set(key, end);
    const seq = p.class === "dllp" ? null : (sequence.get(key) ?? 100);
    if (seq !== null) sequence.set(key, seq + 1);
    const packet: Packet = {
      id: packets.length, link: l, direction, start_fs: Math.round(start), end_fs: Math.round(end), arrive_fs: Math.round(end + 20e6), kind: "MWr", class: "tlp",
      text: "", flow: null, transaction: null, tag: null, sequence: seq, bytes, replay: false, bad: false, nullified: false, phases: [], outcome: null, ...p,
    };
    packets.push(packet);
    if (seq !== null && seq % 4 === 0) send(l, 1 - direction, packet.arrive_fs + 30e6, 8, { kind: "Ack", class: "dllp", text: `Ack ${seq}` });
    if (seq !== null && seq % 6 === 0) send(l, 1 - direction, packet.arrive_fs + 180e6, 8, { kind: "UpdateFC-P", class: "dllp", text: `UpdateFC-P VC0 hdr ${seq & 255} data ${(seq * 16) & 4095}` });
    return packet;
  };
  const hop = (t: Transaction, way: number[], direction: number, at: number, bytes: number, p: Partial<Packet>): number => {
    way.forEach((l, i) => {
      const wire = send(l, direction, at, bytes, { ...p, flow: t.flow, transaction: t.id });
      const d = links[l]!.directions[direction]!;
      const add = (cause: number, place: string, start: number, end: number, behind: string | null = null) => {
        if (end > start) t.intervals.push({ cause, place, behind, start_fs: start, duration_fs: end - start });
      };
      add(3, `${d.from} → ${d.to}`, at, wire.start_fs, spec.devices[(t.flow + 1) % spec.devices.length]!.name);
      add(1, `${d.from} → ${d.to}`, wire.start_fs, wire.end_fs);
      add(2, `${d.from} → ${d.to}`, wire.end_fs, wire.arrive_fs);
      at = wire.arrive_fs;
      if (i < way.length - 1) {
        add(0, d.to, at, at + 150e6);
        at += 150e6;
      }
    });
    return at;
  };
  for (let n = 0; packets.length < limit; n++) {
    const k = n % spec.devices.length;
    const d = spec.devices[k]!;
    const start = from + Math.floor(n / spec.devices.length) * 110e6 + k * 31e6;
    const address = 0x10000000 + n * d.size;
    const t: Transaction = { id: 1000 + n, flow: k, start_fs: start, end_fs: start, text: `${d.op} of ${d.size} B at 0x${address.toString(16)}`, ending: "done", intervals: [] };
    const way = ways[k]!;
    const tag = n % 32;
    if (d.op === "write") {
      t.end_fs = hop(t, way, 0, start, 280, { kind: "MWr", role: "write", tag: 0, header: { requester: ids[k]!, length: 64, address: `0x${address.toString(16)}`, first_be: 15, last_be: 15 }, text: `MWr, len 64, requester ${ids[k]!}, tag 0x00, last 0xf, first 0xf, addr 0x${address.toString(16)}`, replay: n % 37 === 20 });
    } else {
      const at = hop(t, way, 0, start, 24, { kind: "MRd", role: "read", tag, header: { requester: ids[k]!, length: d.size / 4, address: `0x${address.toString(16)}`, first_be: 15, last_be: 15 }, text: `MRd, len ${d.size / 4}, requester ${ids[k]!}, tag 0x${tag.toString(16)}, last 0xf, first 0xf, addr 0x${address.toString(16)}` });
      t.intervals.push({ cause: 9, place: "host", behind: null, start_fs: at, duration_fs: 200e6 });
      t.end_fs = hop(t, [...way].reverse(), 1, at + 200e6, 276, { kind: "CplD", role: "completion", tag, header: { requester: ids[k]!, completer: "00:00.0", status: "SC", length: 64, byte_count: d.size, lower_address: 0 }, text: `CplD, len 64, completer 00:00.0, SC, byte count ${d.size}, requester ${ids[k]!}, tag 0x${tag.toString(16)}, lowaddr 0x00` });
    }
    transactions.push(t);
  }
  const bad = packets.find((p) => p.class === "tlp" && p.id > 30);
  if (bad) bad.bad = true;
  packets.sort((a, b) => a.start_fs - b.start_fs || a.id - b.id);
  const cut = packets.slice(0, limit);
  const used = new Set(cut.flatMap((p) => [links[p.link]!.lower, links[p.link]!.upper]));
  const columns = [...spec.devices, ...spec.switches].map((x) => x.name).filter((x) => used.has(x));
  return { columns: [...columns, "host"], from_fs: from, to_fs: Math.max(...cut.map((p) => p.arrive_fs)), packets: cut, transactions };
}

function toml(spec: MockSpec): string {
  const lines = [`title = ${JSON.stringify(spec.title)}`, `stop  = "200us"`, `host  = "ideal"`, ""];
  for (const s of spec.switches) lines.push(`[switch.${s.name}]`, `under = "${s.under}"`, `link  = "gen${s.gen ?? 4} x${s.width ?? 4}"`, "");
  for (const d of spec.devices) lines.push(`[device.${d.name}]`, `under = "${d.under}"`, `link  = "gen${d.gen ?? 4} x${d.width ?? 4}"   # <b>&amp; not a tag</b> </script>`, `model = "dma"`, "");
  return [...lines, "[load]", ...spec.devices.map((d) => `${d.name} = { op = "${d.op}", size = "${d.size}B", outstanding = 32 }`)].join("\n");
}
