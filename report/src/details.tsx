/** The chosen packet in words, and where its transaction's time went, interval by interval. */
import { bytes, instant, time } from "./format";
import { causeColour, ENDINGS } from "./palette";
import type { Interval, Ladder, Packet, Transaction } from "./result";
import { Swatch } from "./swatch";
import { TipRows, tip } from "./tip";
import type { View } from "./view";

interface Props {
  view: View;
  ladder: Ladder;
  packet: Packet | null;
}

export function Details({ view, ladder, packet: p }: Props) {
  if (!p) {
    return (
      <aside class="details">
        <p class="empty">Choose a packet to see its fields and where its transaction's time went.</p>
        <Keys />
      </aside>
    );
  }
  const { result } = view;
  const d = result.links[p.link]!.directions[p.direction]!;
  const transaction = p.transaction === null ? undefined : ladder.transactions.find((t) => t.id === p.transaction);
  const precise = (fs: number) => instant(fs, 1e3);
  const flags = [p.bad && "corrupted", p.replay && "sent again", p.nullified && "nullified"].filter(Boolean).join(", ");
  const facts: [string, preact.ComponentChildren][] = p.class === "bus" ? [
    ["master", d.from],
    ["target", d.to],
    ["has the bus", `${precise(p.start_fs)}, for ${time(p.end_fs - p.start_fs, 5)}`],
    ["outcome", p.outcome],
    ["phases", <ul>{(p.phases ?? []).map(([cause, fs], k) => <li key={k}><i class="dot" style={{ background: causeColour(result.causes[cause] ?? "") }} />{result.causes[cause]} {time(fs, 5)}</li>)}</ul>],
  ] : [
    ["on", `${d.from} → ${d.to}`],
    ["sent", `${precise(p.start_fs)}, for ${time(p.end_fs - p.start_fs, 5)}`],
    ["arrived", `${precise(p.arrive_fs)}, ${time(p.arrive_fs - p.start_fs, 5)} after its first bit`],
    ["on the wire", bytes(p.bytes)],
  ];
  if (p.sequence !== null) facts.push(["sequence", p.sequence]);
  if (p.flow !== null) facts.push(["flow", <><Swatch flow={p.flow} />{result.flows[p.flow]?.name}</>]);
  if (flags) facts.push(["state", <b class="warn">{flags}</b>]);
  return (
    <aside class="details">
      <h3>{p.text || p.kind}<small>{p.class.toUpperCase()}</small></h3>
      <dl class="pairs">{facts.map(([k, v]) => <div key={k}><dt>{k}</dt><dd>{v}</dd></div>)}</dl>
      {transaction ? <Waterfall view={view} t={transaction} packet={p} /> : <p class="note">{p.class === "tlp" || p.class === "bus" ? "Its transaction is not in the window." : "It belongs to the link, not to a transaction."}</p>}
      <Keys />
    </aside>
  );
}

function Keys() {
  return <p class="keys"><kbd>↑</kbd> <kbd>↓</kbd> by packet, <kbd>←</kbd> <kbd>→</kbd> along its transaction, <kbd>R</kbd> <kbd>C</kbd> to its request and completion, <kbd>N</kbd> to the next hit of a search</p>;
}

function Waterfall({ view, t, packet }: { view: View; t: Transaction; packet: Packet }) {
  const total = Math.max(1, t.end_fs - t.start_fs);
  const x = (fs: number) => `${Math.max(0, Math.min(100, ((fs - t.start_fs) / total) * 100))}%`;
  const width = (fs: number) => `${Math.max(0.4, (fs / total) * 100)}%`;
  return (
    <div class="waterfall">
      <h4>{t.text}{t.ending && t.ending !== "done" && <b class="warn">, {ENDINGS[t.ending]}</b>}<small>{time(t.end_fs - t.start_fs, 5)}</small></h4>
      <div class="whole" aria-hidden="true">
        {t.intervals.map((i, k) => <i key={k} style={{ left: x(i.start_fs), width: width(i.duration_fs), background: causeColour(view.result.causes[i.cause] ?? "") }} />)}
        <b style={{ left: x(packet.start_fs), width: width(packet.arrive_fs - packet.start_fs) }} title="This packet" />
      </div>
      <ol>
        {t.intervals.map((i, k) => <Step key={k} view={view} interval={i} left={x(i.start_fs)} width={width(i.duration_fs)} start={t.start_fs} total={total} />)}
      </ol>
    </div>
  );
}

function Step(p: { view: View; interval: Interval; left: string; width: string; start: number; total: number }) {
  const { interval: i } = p;
  const cause = p.view.result.causes[i.cause] ?? "?";
  return (
    <li {...tip(() => <><b>{cause}</b><p>{i.place}{i.behind && `, behind ${i.behind}`}</p><TipRows rows={[{ name: "begins at", value: `+${time(i.start_fs - p.start, 5)}` }, { name: "lasts", value: time(i.duration_fs, 5) }]} /></>)}>
      <span class="what"><i class="dot" style={{ background: causeColour(cause) }} />{cause}<small>{i.place}{i.behind && ` · behind ${i.behind}`}</small></span>
      <span class="lasts">{time(i.duration_fs, 4)}</span>
      <span class="track" aria-hidden="true"><i style={{ left: p.left, width: p.width, background: causeColour(cause) }} /></span>
    </li>
  );
}
