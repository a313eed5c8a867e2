/** Packet by packet: a column for each node, time downwards, an arrow for everything on a wire, the phases of everything on a bus. */
import { useCallback, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { BusMark } from "./bus_mark";
import { Compare } from "./compare";
import { comparable } from "./compare_layout";
import { Details } from "./details";
import { instant, plural, px } from "./format";
import { useWidth } from "./hooks";
import { abridge, along, layOut, partner, ROW, shownPackets, type Rung, type Rungs, type Shown } from "./ladder_layout";
import { flowColour } from "./palette";
import type { Ladder as LadderData, Packet } from "./result";
import { entriesOf, nextOf, readQuery, search, transactionEntry } from "./search";
import { SearchBar } from "./search_bar";
import { Empty, Section } from "./section";
import { useVirtual } from "./virtual";
import type { Chosen, View } from "./view";

/** The narrowest gutter, and what a character of an instant in it takes. */
const GUTTER = 80;
const INSTANT_CHARACTER_PX = 6.2;
const WIDE = { margin: 40, gap: 124 };
const NARROW = { margin: 28, gap: 100 };
const HEADER = 34;
/** The widest head of an outer column, and what a character of a head takes. */
const HEAD_PX = 130;
const HEAD_CHARACTER_PX = 7.6;
/** With more columns than this, the ladder begins with one transaction: its arrows would cross too much else. */
const MANY_COLUMNS = 12;

const HINTS = {
  packets: "Every packet in the window, from its first bit at the sender to its last bit at the receiver. Silences are shortened.",
  compare: "The first transaction of each flow in the window, from its start, on one time scale, with the causes of its time.",
};

export function Ladder({ view }: { view: View }) {
  const { result, filter } = view;
  const { ladder } = result;
  const [wanted, setShow] = useState<keyof typeof HINTS>("packets");
  const flows = useMemo(() => (ladder ? comparable(result, ladder, filter) : []), [result, ladder, filter]);
  const show = flows.length > 1 ? wanted : "packets";
  const asked = view.chosen?.at === "ladder" ? view.chosen : null;
  useLayoutEffect(() => {
    if (!asked) return;
    setShow("packets");
    (document.querySelector("#ladder .rungs") ?? document.getElementById("ladder"))?.scrollIntoView({ block: "nearest" });
  }, [asked]);
  const choice = (which: keyof typeof HINTS, text: string) => (
    <button type="button" role="radio" aria-checked={show === which} onClick={() => setShow(which)}>{text}</button>
  );
  const aside = flows.length > 1 && <div class="picker" role="radiogroup" aria-label="Show">{choice("packets", "Packet by packet")}{choice("compare", "Side by side")}</div>;
  return (
    <Section id="ladder" title="Ladder" hint={HINTS[show]} aside={aside}>
      {!ladder || ladder.packets.length === 0 ? (
        <Empty>This run kept no window of packets.</Empty>
      ) : show === "packets" ? <Stepper view={view} ladder={ladder} asked={asked} /> : <Compare view={view} flows={flows} />}
    </Section>
  );
}

function Stepper({ view, ladder, asked }: { view: View; ladder: LadderData; asked: Chosen | null }) {
  const { result, filter } = view;
  const [dllps, setDllps] = useState(true);
  const start = useMemo(() => ladder.packets.find((p) => p.transaction !== null) ?? null, [ladder]);
  const [only, setOnly] = useState<number | null>(ladder.columns.length > MANY_COLUMNS ? (start?.transaction ?? null) : null);
  const [id, setId] = useState<number | null>(start?.id ?? null);
  const shown = useMemo((): Shown => ({ ...filter, dllps, transaction: only }), [filter, dllps, only]);
  const rungs = useMemo(() => layOut(result, ladder, shown), [result, ladder, shown]);
  const at = rungs.rungs.findIndex((r) => r.packet.id === id);
  const packet = at >= 0 ? rungs.rungs[at]!.packet : null;
  const select = useCallback((i: number | null) => i !== null && rungs.rungs[i] && setId(rungs.rungs[i]!.packet.id), [rungs]);
  const found = useSearch(view, ladder, rungs, at, select);
  const showAll = () => {
    view.clearFilter();
    setOnly(null);
    setDllps(true);
  };

  useLayoutEffect(() => {
    const number = asked && view.transactions[asked.row]!.transaction;
    if (number === null) return;
    const own = ladder.packets.filter((p) => p.transaction === number);
    const first = own.find((p) => shownPackets({ ...ladder, packets: [p] }, { ...shown, transaction: null }).length > 0);
    if (!first) view.clearFilter();
    if (only !== null) setOnly(number);
    setId((first ?? own[0]!).id);
  }, [asked]);

  const moves = {
    previous: at > 0 ? at - 1 : null,
    next: at + 1 < rungs.rungs.length ? at + 1 : null,
    back: along(rungs.rungs, at, -1),
    on: along(rungs.rungs, at, 1),
    request: partner(rungs.rungs, at, "request"),
    completion: partner(rungs.rungs, at, "completion"),
  };
  const KEYS: Record<string, number | null> = {
    ArrowDown: moves.next, ArrowUp: moves.previous, ArrowRight: moves.on, ArrowLeft: moves.back, r: moves.request, c: moves.completion,
    n: nextOf(found.places, at, 1), N: nextOf(found.places, at, -1), Home: 0, End: rungs.rungs.length - 1,
    PageDown: Math.min(rungs.rungs.length - 1, at + 12), PageUp: Math.max(0, at - 12),
  };
  const onKeyDown = (e: KeyboardEvent) => {
    if (!(e.key in KEYS) || e.ctrlKey || e.metaKey || e.altKey) return;
    e.preventDefault();
    select(KEYS[e.key]!);
  };
  const step = (to: number | null, label: string, text: string, key: string) => (
    <button type="button" disabled={to === null} onClick={() => select(to)} aria-label={label} title={`${label} (${key})`}>{text}</button>
  );
  return (
    <>
      <div class="toolbar" role="toolbar" aria-label="Step through the ladder">
        <span class="group">{step(moves.previous, "Previous packet", "↑", "↑")}{step(moves.next, "Next packet", "↓ Step", "↓")}</span>
        <span class="group">{step(moves.back, "Back along the transaction", "←", "←")}{step(moves.on, "On along the transaction", "Follow →", "→")}</span>
        <span class="group">{step(moves.request, "Jump to the request", "⇤ Request", "R")}{step(moves.completion, "Jump to the completion", "Completion ⇥", "C")}</span>
        <label><input type="checkbox" checked={dllps} onChange={(e) => setDllps(e.currentTarget.checked)} />DLLPs</label>
        <label><input type="checkbox" checked={only !== null} disabled={only === null && packet?.transaction == null} onChange={(e) => setOnly(e.currentTarget.checked ? packet!.transaction : null)} />only this transaction</label>
        <span class="status" aria-live="polite">{at >= 0 ? `${at + 1} of ` : ""}{plural(rungs.rungs.length, "packet")}</span>
      </div>
      <SearchBar result={result} ladder={ladder} {...found} onShowAll={showAll} onListed={() => {
        view.seek(found.text);
        document.getElementById("transactions")?.scrollIntoView({ block: "start" });
      }} />
      {rungs.rungs.length === 0 ? <NoPackets view={view} ladder={ladder} only={only !== null} onAll={() => setOnly(null)} /> : (
        <div class="ladder">
          <Rows view={view} rungs={rungs} at={at} found={found.all} select={select} onKeyDown={onKeyDown} />
          <Details view={view} ladder={ladder} packet={packet} />
        </div>
      )}
    </>
  );
}

/** What is searched for, and where it stands among the rungs. */
function useSearch(view: View, ladder: LadderData, rungs: Rungs, at: number, select: (i: number | null) => void) {
  const [text, setText] = useState("");
  const query = useMemo(() => readQuery(text), [text]);
  const entries = useMemo(() => (query ? entriesOf(view.result, ladder) : []), [view.result, ladder, query !== null]);
  const all = useMemo(() => search(entries, query), [entries, query]);
  const transactions = useMemo(() => (query ? view.transactions.map((t) => transactionEntry(view.result, t)) : []), [view.transactions, query !== null]);
  const listed = useMemo(() => (query && !query.problem ? transactions.filter(query.fits).length : 0), [transactions, query]);
  const places = useMemo(() => rungs.rungs.flatMap((r, i) => (all.has(r.packet.id) ? [i] : [])), [rungs, all]);
  const place = places.indexOf(at);
  // As one types, the first hit from the chosen packet on is chosen.
  useLayoutEffect(() => {
    if (places.length > 0 && place < 0) select(nextOf(places, at, 1));
  }, [all]);
  return { text, query, all, places, listed, hits: all.size, shown: places.length, at: place < 0 ? null : place + 1, onText: setText, onStep: (step: 1 | -1) => select(nextOf(places, at, step)) };
}

/** Why no packet is shown, and what brings some back. */
function NoPackets({ view, ladder, only, onAll }: { view: View; ladder: LadderData; only: boolean; onAll: () => void }) {
  const { range } = view.filter;
  const outside = range && (range[1] <= ladder.from_fs || range[0] >= ladder.to_fs);
  const span = ladder.to_fs - ladder.from_fs;
  return (
    <Empty>
      {outside ? "The chosen time range lies outside the ladder's window. " : "No packet of the window is in the selection. "}
      {outside && <button type="button" class="plain" onClick={() => view.chooseRange([ladder.from_fs, ladder.to_fs])}>Choose the window, {instant(ladder.from_fs, span)} – {instant(ladder.to_fs, span)}</button>}
      {only && <button type="button" class="plain" onClick={onAll}>Show all transactions</button>}
    </Empty>
  );
}

interface RowsProps {
  view: View;
  rungs: Rungs;
  at: number;
  /** Packets that were searched for. */
  found: ReadonlySet<number>;
  select: (i: number) => void;
  onKeyDown: (e: KeyboardEvent) => void;
}

function Rows({ view, rungs, at, found, select, onKeyDown }: RowsProps) {
  const [outer, width] = useWidth<HTMLDivElement>();
  const scroller = useRef<HTMLDivElement>(null);
  const sizes = useMemo(() => rungs.rungs.map((r) => r.height), [rungs]);
  const virtual = useVirtual(scroller, sizes, HEADER + ROW);
  const items = virtual.getVirtualItems();
  const columns = rungs.columns.length;
  const gutter = useMemo(() => gutterOf(rungs), [rungs]);
  const { margin: narrowest, gap: least } = width < 480 ? NARROW : WIDE;
  // The outer heads are centred above their lines, so half of them stands in the margin.
  const margin = Math.max(narrowest, ...[rungs.columns[0], rungs.columns[columns - 1]].map((name) => Math.min(HEAD_PX, (name ?? "").length * HEAD_CHARACTER_PX) / 2 + 4));
  const gap = columns > 1 ? Math.max(least, (width - gutter - 2 * margin) / (columns - 1)) : 0;
  const x = (c: number) => gutter + margin + c * gap;
  const full = Math.max(width, x(columns - 1) + margin);
  const chosen = at >= 0 ? rungs.rungs[at]! : null;

  useLayoutEffect(() => {
    if (chosen && scroller.current) reveal(scroller.current, chosen, x, margin, gutter);
  }, [at, rungs, width > 0]);

  const first = Math.max(0, (items[0]?.index ?? 0) - rungs.reach);
  const last = items[items.length - 1]?.index ?? -1;
  const top = scroller.current?.scrollTop ?? 0;
  const visible = rungs.rungs.slice(first, last + 1).filter((r) => r.y[3] >= top - 200);
  return (
    <div ref={outer} class="rungs">
      <div ref={scroller} class="scroller" tabIndex={0} role="listbox" aria-label="Packets in order of time" onKeyDown={onKeyDown}
        aria-activedescendant={chosen ? `packet-${chosen.packet.id}` : undefined}>
        <div class="columns" style={{ width: px(full), height: px(HEADER) }} aria-hidden="true">
          <i class="corner" style={{ width: px(gutter), height: px(HEADER - 1) }} />
          {rungs.columns.map((name, c) => <b key={name} style={{ left: px(x(c)), maxWidth: px(c === 0 || c === columns - 1 ? Math.min(Math.max(80, gap - 8), 2 * margin - 4) : Math.max(80, gap - 8)) }}>{name}</b>)}
        </div>
        <div class="sheet" style={{ width: px(full) }}>
          <svg width={full} height={rungs.height} role="presentation">
            {rungs.columns.map((name, c) => <line key={name} class="life" x1={x(c)} x2={x(c)} y1="0" y2={rungs.height} />)}
            {visible.map((r) => (
              <RungMark key={r.packet.id} rung={r} x={x} gap={gap} unit={rungs.unit} view={view} chosen={r === chosen} found={found.has(r.packet.id)}
                related={chosen !== null && chosen.packet.transaction !== null && r.packet.transaction === chosen.packet.transaction}
                dim={!found.has(r.packet.id) && chosen !== null && chosen.packet.transaction !== null && r.packet.transaction !== chosen.packet.transaction}
                onClick={() => select(rungs.rungs.indexOf(r))} />
            ))}
          </svg>
          <svg class="gutter" width={gutter} height={rungs.height} aria-hidden="true">
            {visible.map((r) => <Stamp key={r.packet.id} rung={r} gutter={gutter} unit={rungs.unit} chosen={r === chosen} />)}
          </svg>
        </div>
      </div>
    </div>
  );
}

/** Wide enough for the instants in it, of which the last is the longest. */
function gutterOf({ rungs, unit }: Rungs): number {
  const last = rungs[rungs.length - 1];
  return last ? Math.max(GUTTER, Math.ceil(instant(last.packet.start_fs, unit).length * INSTANT_CHARACTER_PX) + 14) : GUTTER;
}

/** Scrolls until the whole arrow is in sight, or at least its beginning. */
function reveal(el: HTMLElement, r: Rung, x: (c: number) => number, margin: number, gutter: number): void {
  const [left, right] = [x(Math.min(r.from, r.to)) - gutter, x(Math.max(r.from, r.to))];
  if (left - margin < el.scrollLeft) el.scrollLeft = r.from === 0 || r.to === 0 ? 0 : left - margin;
  else if (right + margin > el.scrollLeft + el.clientWidth) el.scrollLeft = right + margin - el.clientWidth;
  const above = r.top - ROW;
  const below = Math.min(r.y[3] + ROW, above + el.clientHeight - HEADER) + HEADER;
  if (above < el.scrollTop) el.scrollTop = above;
  else if (below > el.scrollTop + el.clientHeight) el.scrollTop = below - el.clientHeight;
}

interface MarkProps {
  rung: Rung;
  x: (column: number) => number;
  gap: number;
  unit: number;
  view: View;
  chosen: boolean;
  found: boolean;
  related: boolean;
  dim: boolean;
  onClick: () => void;
}

const colourOf = (p: Packet): string =>
  p.bad ? "var(--bad)" : p.replay || p.nullified ? "var(--cause-replay)" : p.class === "dllp" ? "var(--part-dllp)" : p.flow === null ? "var(--ink-3)" : flowColour(p.flow);

function RungMark({ rung, x, gap, unit, view, chosen, found, related, dim, onClick }: MarkProps) {
  const { packet: p, y } = rung;
  const [x0, x1] = [x(rung.from), x(rung.to)];
  const way = Math.sign(x1 - x0) || 1;
  const text = fit(p, Math.abs(x1 - x0) || gap);
  const link = view.result.links[p.link]!.directions[p.direction]!;
  const spoken = `${p.text || p.kind}, ${link.from} to ${link.to}, at ${instant(p.start_fs, unit)}${p.bad ? ", corrupted" : ""}${p.replay ? ", replayed" : ""}${p.nullified ? ", nullified" : ""}`;
  const state = `${p.class}${chosen ? " chosen" : ""}${found ? " found" : ""}${related ? " related" : ""}${dim ? " dim" : ""}${p.bad ? " bad" : ""}${p.replay ? " replayed" : ""}${p.nullified ? " nullified" : ""}`;
  return (
    <g class={`rung ${state}`} id={`packet-${p.id}`} role="option" aria-selected={chosen} aria-label={spoken} style={{ "--colour": colourOf(p) }} onClick={onClick}>
      <rect class="hit" x="0" width={Math.max(x0, x1) + 24} y={rung.top - ROW / 2 - 2} height={ROW} />
      {rung.bands.length > 0 ? <BusMark packet={p} bands={rung.bands} x0={x0} x1={x1} causes={view.result.causes} /> : <>
      <polygon points={`${x0},${y[0]} ${x1},${y[2]} ${x1},${y[3]} ${x0},${y[1]}`} />
      <line class="shaft" x1={x0} y1={y[0]} x2={x1} y2={y[2]} />
      <line class="tail" x1={x0} y1={y[1]} x2={x1 - way * 5} y2={y[3]} />
      <path class="head" d={`M${x1},${y[3]}l${-8 * way},-5v9z`} />
      </>}
      {p.bad && <path class="cross" d={`M${(x0 + x1) / 2 - 5},${(y[0] + y[3]) / 2 - 5}l10,10m0,-10l-10,10`} />}
      <circle cx={x0} cy={y[0]} r="3" />
      <text class="label" x={x0 + way * 9} y={y[0] + (y[2] - y[0]) * 0.04 - 4} text-anchor={way > 0 ? "start" : "end"}>{text}</text>
    </g>
  );
}

/** When a packet starts, and a mark where silence before it was shortened. */
function Stamp({ rung, gutter, unit, chosen }: { rung: Rung; gutter: number; unit: number; chosen: boolean }) {
  const y = rung.y[0];
  return (
    <>
      <text class={chosen ? "chosen" : ""} x={gutter - 8} y={y + 4}>{instant(rung.packet.start_fs, unit)}</text>
      {rung.gap > 0 && <line x1={gutter - 30} x2={gutter - 8} y1={y - ROW * 0.75} y2={y - ROW * 0.75} />}
    </>
  );
}

const CHARACTER_PX = 6.5;

/** What fits on the arrow: what it is and, as long as there is room, the address, whose end tells packets apart. */
function fit(p: Packet, room: number): string {
  const marks = `${p.replay ? "↻ " : ""}${p.bad ? "✕ " : ""}${p.nullified ? "∅ " : ""}`;
  const most = Math.max(4, Math.floor((room - 24) / CHARACTER_PX) - marks.length);
  const { brief, address } = abridge(p);
  const least = address && `${p.kind} …${address.slice(-Math.max(3, Math.min(address.length, most - p.kind.length - 2)))}`;
  const found = [brief, address && `${p.kind} @ ${address}`, address && `${p.kind} ${address}`, least].find((t) => t && t.length <= most);
  return marks + (found || (p.kind.length >= most ? p.kind.slice(0, most) : brief.slice(0, most - 1) + "…"));
}
