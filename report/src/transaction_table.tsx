/** The transactions that are known one by one, as a table; and one of them with its causes and the way to its packets. */
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { matches } from "./filter";
import { count, ns, percent, plural, timeUnit } from "./format";
import { LongTable, type Column, type Sort } from "./long_table";
import { causeColour, ENDINGS } from "./palette";
import type { Result } from "./result";
import { Empty, Section } from "./section";
import { readQuery, transactionEntry } from "./search";
import { Swatch } from "./swatch";
import { TipRows, tip } from "./tip";
import { ladderAt, mostly, told, type Listed } from "./transactions";
import { shownFlows, type View } from "./view";

export function TransactionTable({ view }: { view: View }) {
  const { result, filter, transactions: rows, chosen } = view;
  const [sort, setSort] = useState<Sort>({ by: "latency", down: true });
  const [flow, setFlow] = useState<number | null>(null);
  const one = useRef<HTMLDivElement>(null);
  const columns = useMemo(() => columnsOf(view), [result]);
  const text = view.sought;
  const query = useMemo(() => readQuery(text), [text]);
  const entries = useMemo(() => (query ? rows.map((r) => transactionEntry(result, r)) : []), [rows, query !== null]);
  const left = useMemo(
    () => rows.flatMap((r, i) => ((flow === null || r.flow === flow) && matches(r, filter) && (!query || (!query.problem && query.fits(entries[i]!))) ? [i] : [])),
    [rows, filter, flow, query, entries],
  );
  const asked = chosen?.at === "table" ? chosen : null;
  useLayoutEffect(() => {
    if (asked && flow !== null && rows[asked.row]!.flow !== flow) setFlow(null);
    if (asked && text !== "" && !left.includes(asked.row)) view.seek("");
    if (chosen && chosen.at !== "ladder") one.current?.scrollIntoView({ block: "nearest" });
  }, [chosen]);
  const flows = shownFlows(view);
  const aside = flows.length > 1 && (
    <select aria-label="Transactions of" value={flow ?? ""} onChange={(e) => setFlow(e.currentTarget.value === "" ? null : Number(e.currentTarget.value))}>
      <option value="">All flows</option>
      {flows.map((i) => <option key={i} value={i}>{result.flows[i]!.name}</option>)}
    </select>
  );
  return (
    <Section id="transactions" title="Transactions" hint={rows.length > 0 && <Scope result={result} />} aside={rows.length > 0 && aside}>
      {rows.length === 0 ? <Empty>The run has no sample of transactions, and no ladder.</Empty> : (
        <>
          <div class="search" role="search">
            <div class="toolbar">
              <input type="search" aria-label="Search the transactions" placeholder="Search: 0x1000, tag 0x1f, read, 04:00.0, flow" spellcheck={false} autocomplete="off" value={text}
                onInput={(e) => view.seek(e.currentTarget.value)} onKeyDown={(e) => e.key === "Escape" && view.seek("")} />
              {query && !query.problem && <span class="hits" aria-live="polite">{plural(left.length, "hit")}</span>}
            </div>
            {query?.problem && <p class="note warn">{query.problem}</p>}
          </div>
          {left.length === 0 ? <Empty>None of the {plural(rows.length, "transaction")} listed here is in the selection.</Empty> : (
            <>
              <p class="note counted" aria-live="polite">{left.length === rows.length ? plural(left.length, "transaction") : `${count(left.length)} of the ${plural(rows.length, "transaction")} listed`}</p>
              <LongTable label="Transactions" line="Transaction that starts at" columns={columns} count={rows.length} left={left} sort={sort} chosen={chosen?.row ?? null} reveal={asked}
                onSort={setSort} onChoose={(row) => view.choose({ row, at: "line" })} />
            </>
          )}
          {chosen && <div ref={one}><One view={view} row={rows[chosen.row]!} /></div>}
        </>
      )}
    </Section>
  );
}

/** How much of the run is listed. */
function Scope({ result }: { result: Result }) {
  const { sampled, ended, failed, laddered, open } = useMemo(() => told(result), [result]);
  const parts = [
    ended === 1 && sampled === 1 ? "The only transaction that ended well" : sampled >= ended ? `All ${plural(ended, "transaction")} that ended well` : `A uniform sample of ${count(sampled)} of the ${plural(ended, "transaction")} that ended well`,
    laddered > 0 && ` and the ${laddered === 1 ? "one" : count(laddered)} with packets in the ladder`,
    ".",
    failed > 0 && ` Failed transactions (${count(failed)}) are listed only if the ladder has packets of them.`,
    open > 0 && ` ${count(open)} more ${open === 1 ? "has" : "have"} packets in the ladder, but had not ended when the run did, or had ended before.`,
    " A click on a column's name sorts.",
  ];
  return <>{parts.filter(Boolean).join("")}</>;
}

function columnsOf(view: View): Column[] {
  const { result, transactions: rows } = view;
  const cause = (r: Listed) => mostly(r);
  const name = (k: number) => result.causes[k] ?? "?";
  const status = (r: Listed) => (r.ending === "done" ? "done" : ENDINGS[r.ending]);
  return [
    { key: "start", name: "start", number: true, text: (i) => startOf(result, rows[i]!), value: (i) => rows[i]!.start_fs },
    { key: "latency", name: "latency", number: true, downFirst: true, text: (i) => ns(rows[i]!.latency_ns, 4), value: (i) => rows[i]!.latency_ns },
    { key: "flow", name: "flow", number: false, text: (i) => `--${result.flows[rows[i]!.flow]!.name}`, value: (i) => result.flows[rows[i]!.flow]!.name, show: (i) => <><Swatch flow={rows[i]!.flow} />{result.flows[rows[i]!.flow]!.name}</> },
    { key: "kind", name: "kind", number: false, text: (i) => rows[i]!.kind, value: (i) => rows[i]!.kind },
    { key: "address", name: "address", number: true, text: (i) => rows[i]!.address ?? "–", value: (i) => rows[i]!.address?.slice(2).padStart(16, "0") ?? null },
    { key: "requester", name: "requester", number: false, text: (i) => rows[i]!.requester ?? "–", value: (i) => rows[i]!.requester },
    { key: "tag", name: "tag", number: true, text: (i) => (rows[i]!.tag === null ? "–" : `0x${rows[i]!.tag.toString(16)}`), value: (i) => rows[i]!.tag },
    { key: "bytes", name: "bytes", number: true, downFirst: true, text: (i) => (rows[i]!.bytes === null ? "–" : count(rows[i]!.bytes)), value: (i) => rows[i]!.bytes },
    {
      key: "mostly", name: "mostly", number: false, text: (i) => { const c = cause(rows[i]!); return c ? `--${name(c.cause)} ${percent(c.share)}` : "–"; },
      value: (i) => { const c = cause(rows[i]!); return c && `${name(c.cause)} ${(1 - c.share).toFixed(6)}`; },
      show: (i) => { const c = cause(rows[i]!); return c ? <><i class="dot" style={{ background: causeColour(name(c.cause)) }} />{name(c.cause)} <span class="quiet">{percent(c.share)}</span></> : "–"; },
    },
    { key: "status", name: "status", number: false, text: (i) => status(rows[i]!), value: (i) => status(rows[i]!), show: (i) => <span class={rows[i]!.ending === "done" ? "quiet" : "warn"}>{status(rows[i]!)}</span> },
    {
      key: "packets", name: "in the ladder", number: true, downFirst: true, text: (i) => (rows[i]!.packets > 0 ? plural(rows[i]!.packets, "packet") : "–"), value: (i) => rows[i]!.packets || null,
      show: (i) => rows[i]!.packets > 0 ? <button type="button" class="plain" onClick={(e) => { e.stopPropagation(); view.choose({ row: i, at: "ladder" }); }}>{plural(rows[i]!.packets, "packet")}</button> : <span class="quiet">–</span>,
    },
  ];
}

/** When it starts: to a tenth of a nanosecond, in the unit of the whole run, so that a column can be read. */
function startOf(result: Result, row: Listed): string {
  const { scale, name } = timeUnit(result.end_fs);
  return `${(row.start_fs / scale).toFixed(Math.max(0, Math.round(Math.log10(scale / 1e5))))}\u202f${name}`;
}

/** The chosen transaction. */
function One({ view, row }: { view: View; row: Listed }) {
  const { result, chosen } = view;
  const { name } = result.flows[row.flow]!;
  const causes = row.causes_ns.map((ns, k) => ({ ns, cause: result.causes[k] ?? "?" })).filter((c) => c.ns > 0).sort((a, b) => b.ns - a.ns);
  const all = causes.reduce((sum, c) => sum + c.ns, 0) || 1;
  const end = row.start_fs + row.latency_ns * 1e6;
  const rows = causes.map((c) => ({ name: c.cause, colour: causeColour(c.cause), value: ns(c.ns) }));
  return (
    <div class="one" role="region" aria-label="The chosen transaction">
      {chosen?.sought && <Sought sought={chosen.sought} row={row} flow={name} />}
      <p><Swatch flow={row.flow} /><b>{row.kind}{row.bytes !== null && ` of ${count(row.bytes)} B`}{row.address && ` at ${row.address}`}</b> of {name}{row.requester && ` (${row.requester}${row.tag === null ? "" : `, tag 0x${row.tag.toString(16)}`})`}{row.ending !== "done" && <b class="warn">, {ENDINGS[row.ending]}</b>}: {ns(row.latency_ns, 5)} from {startOf(result, row)}</p>
      <div class="stack" tabIndex={0} role="img" aria-label={rows.map((r) => `${r.name} ${r.value}`).join(", ")} {...tip(() => <><b>Where its time went</b><TipRows rows={rows} /></>)}>
        {causes.map((c) => <i key={c.cause} style={{ width: `${(c.ns / all) * 100}%`, background: causeColour(c.cause) }} />)}
      </div>
      <ul class="legend">{rows.map((r) => <li key={r.name}><i class="dot" style={{ background: r.colour }} />{r.name} {r.value}</li>)}</ul>
      <p class="ways">
        {row.packets > 0
          ? <button type="button" class="plain" onClick={() => view.choose({ row: chosen!.row, at: "ladder" })}>Show its {plural(row.packets, "packet")} in the ladder</button>
          : <span>Its packets are not in the ladder. Run again with <code>--set {ladderAt(row)}</code> for a ladder that begins with it.</span>}
        <button type="button" class="plain" onClick={() => view.chooseRange([Math.max(row.start_fs, result.start_fs), Math.min(end, result.end_fs)])}>Choose its time range</button>
      </p>
    </div>
  );
}

/** What it stands for, and how near it is. */
function Sought({ sought: { name, latency_ns }, row, flow }: { sought: { name: string; latency_ns: number }; row: Listed; flow: string }) {
  const off = row.latency_ns - latency_ns;
  const figure = `the ${name} of ${flow}, ${ns(latency_ns, 5)}`;
  return <p class="note">{Math.abs(off) < 1e-6 ? `It has ${figure}.` : `Of the transactions listed here the nearest to ${figure}: ${ns(Math.abs(off))} ${off > 0 ? "above" : "below"} it.`}</p>;
}
