/** The configuration space of a function at a moment: decoded, byte by byte, and with what changed; and all changes as a table. */
import { useMemo, useState } from "preact/hooks";
import { count, instant, plural, timeUnit } from "./format";
import { LongTable, type Column, type Sort } from "./long_table";
import { changedBetween, changesOf, dumpLines, spaceAt } from "./registers";
import { decode, registerAt, type Block, type Register } from "./registers_decode";
import type { ConfigSpaces, FunctionRegisters, RegisterChange, Result } from "./result";
import { Empty, Section } from "./section";
import type { View } from "./view";

const BY: Record<RegisterChange["by"], string> = { write: "configuration write", reset: "reset", hardware: "hardware", several: "several, not told one by one" };

export function ConfigSpaceView({ view }: { view: View }) {
  const spaces = view.result.config_spaces ?? null;
  return (
    <Section id="registers" title="Configuration space" hint="The registers as software reads them, at the end of the chosen time range or at another moment. Changes are marked.">
      {spaces && spaces.functions.length > 0 ? <Moment view={view} spaces={spaces} /> : <Empty>The run did not keep its configuration spaces over time.</Empty>}
    </Section>
  );
}

/** What a moment is compared with. */
type Since = "start" | "before";

/** The first function that something changed in. */
const firstChanged = (spaces: ConfigSpaces): number => spaces.changes[0]?.function ?? 0;

const hex = (value: number, digits: number): string => value.toString(16).padStart(digits, "0");

const labelOf = (f: FunctionRegisters): string => (f.function ? `${f.function} ${f.name}` : f.name);

function Moment({ view, spaces }: { view: View; spaces: ConfigSpaces }) {
  const { result } = view;
  const { range } = view.filter;
  const [at, setFunction] = useState(() => firstChanged(spaces));
  // A moment of its own holds until another range is chosen.
  const [own, setOwn] = useState<{ fs: number; of: typeof range } | null>(null);
  const [before, setBefore] = useState<number | null>(null);
  const [since, setSince] = useState<Since>("start");
  const moment = own && own.of === range ? own.fs : (range?.[1] ?? result.end_fs);
  const start = range?.[0] ?? 0;
  const from = since === "before" && before !== null ? before : start;
  const go = (fs: number) => {
    setBefore(moment);
    setOwn({ fs: Math.max(0, Math.min(result.end_fs, fs)), of: range });
  };
  const changes = useMemo(() => changesOf(spaces, at), [spaces, at]);
  const space = useMemo(() => spaceAt(spaces, at, moment), [spaces, at, moment]);
  const changed = useMemo(() => changedBetween(spaces, at, from, moment), [spaces, at, from, moment]);
  const blocks = useMemo(() => decode(space.bytes), [space]);
  const chosen = spaces.functions[at]!;
  const { gap } = chosen;
  const known = (fs: number) => instant(fs, 1e6);
  return (
    <>
      <div class="toolbar" role="toolbar" aria-label="Function and moment">
        <select aria-label="Function" value={at} onChange={(e) => setFunction(Number(e.currentTarget.value))}>
          {spaces.functions.map((f, i) => <option key={i} value={i}>{labelOf(f)}</option>)}
        </select>
        <Steps result={result} changes={changes} moment={moment} go={go} />
        <label>changed since
          <select aria-label="Mark registers changed since" value={since} onChange={(e) => setSince(e.currentTarget.value as Since)}>
            <option value="start">{range ? "the start of the range" : "the start"}</option>
            <option value="before">the moment before</option>
          </select>
        </label>
        <span class="status" aria-live="polite">{plural(changed.size, "byte")} changed since {known(from)}</span>
      </div>
      {gap && <p class="note">{space.inGap && <b class="warn">Changes around this moment were recorded together; the registers are shown as of {known(gap.from_fs)}. </b>}{plural(gap.count, "change")} of this function between {known(gap.from_fs)} and {known(gap.to_fs)} {gap.count === 1 ? "was" : "were"} recorded together.</p>}
      <div class="registers">
        <Decoded blocks={blocks} changed={changed} changes={changes} moment={moment} from={from} />
        <Dump bytes={space.bytes} changed={changed} blocks={blocks} />
      </div>
      <Changes result={result} spaces={spaces} at={at} moment={moment} onChoose={(c) => { setFunction(c.function); go(c.time_fs); }} />
    </>
  );
}

/** The moment, as a number and from change to change. */
function Steps({ result, changes, moment, go }: { result: Result; changes: RegisterChange[]; moment: number; go: (fs: number) => void }) {
  const unit = timeUnit(result.end_fs);
  const times = useMemo(() => [...new Set(changes.map((c) => c.time_fs))], [changes]);
  const earlier = times.filter((t) => t < moment).pop() ?? (moment > 0 ? 0 : null);
  const later = times.find((t) => t > moment) ?? (moment < result.end_fs ? result.end_fs : null);
  const step = (to: number | null, label: string, text: string) => <button type="button" disabled={to === null} aria-label={label} title={label} onClick={() => to !== null && go(to)}>{text}</button>;
  const typed = (e: Event) => {
    const value = (e.currentTarget as HTMLInputElement).valueAsNumber;
    if (Number.isFinite(value)) go(value * unit.scale);
  };
  return (
    <>
      <span class="group">{step(earlier, "To the change before", "← Change")}{step(later, "To the next change", "Change →")}</span>
      <label class="at">at <input type="number" step="any" min="0" aria-label={`Moment, ${unit.name}`} value={Number((moment / unit.scale).toPrecision(12))} onChange={typed} /> {unit.name}</label>
    </>
  );
}

function Decoded({ blocks, changed, changes, moment, from }: { blocks: Block[]; changed: ReadonlySet<number>; changes: RegisterChange[]; moment: number; from: number }) {
  const isMarked = (r: Register) => Array.from({ length: r.size }, (_, i) => r.offset + i).some((i) => changed.has(i));
  const [early, late] = [Math.min(from, moment), Math.max(from, moment)];
  /** The latest change of it that is marked. */
  const latest = (r: Register) => changes.filter((c) => c.time_fs > early && c.time_fs <= late && c.offset < r.offset + r.size && c.offset + 4 > r.offset).at(-1);
  return (
    <div class="decoded" tabIndex={0} role="group" aria-label="Registers, decoded">
      {blocks.map((b) => (
        <div key={b.offset} class="block">
          <h4><code>{hex(b.offset, b.offset < 256 ? 2 : 3)}</code>{b.name}</h4>
          <dl>
            {b.registers.map((r) => {
              const marked = isMarked(r);
              const last = marked ? latest(r) : undefined;
              return (
                <div key={r.offset} class={marked ? "changed" : ""}>
                  <dt><code>{hex(r.offset, r.offset < 256 ? 2 : 3)}</code>{r.name}</dt>
                  <dd><Flags text={r.value} />{last && <small>changed at {instant(last.time_fs, 1e6)} by {BY[last.by]}</small>}</dd>
                </div>
              );
            })}
          </dl>
        </div>
      ))}
    </div>
  );
}

/** What is set stands out, what is clear stays behind. */
function Flags({ text }: { text: string }) {
  return <>{text.split(" ").map((word, i) => <span key={i} class={/^\S+-$/.test(word) ? "quiet" : ""}>{i > 0 && " "}{word}</span>)}</>;
}

function Dump({ bytes, changed, blocks }: { bytes: Uint8Array; changed: ReadonlySet<number>; blocks: Block[] }) {
  const lines = useMemo(() => dumpLines(bytes, changed), [bytes, changed]);
  return (
    <div class="dump" tabIndex={0} role="group" aria-label="Registers, byte by byte">
      <h4>Bytes, as lspci -xxxx writes them</h4>
      <pre>
        {lines.map((line, k) => (line === null ? <span key={`gap ${k}`} class="quiet" title="Zeros, unchanged">{"…\n"}</span> : (
          <span key={line}>
            <span class="quiet">{hex(line, 2)}:</span>
            {Array.from({ length: 16 }, (_, i) => line + i).map((i) => {
              const text = hex(bytes[i]!, 2);
              return changed.has(i) ? <> <mark title={registerAt(blocks, i) ?? undefined}>{text}</mark></> : ` ${text}`;
            })}
            {"\n"}
          </span>
        )))}
      </pre>
    </div>
  );
}

interface ChangesProps {
  result: Result;
  spaces: ConfigSpaces;
  at: number;
  moment: number;
  onChoose: (change: RegisterChange) => void;
}

/** Changes of the function, or of all. */
function Changes({ result, spaces, at, moment, onChoose }: ChangesProps) {
  const [all, setAll] = useState(false);
  const [sort, setSort] = useState<Sort>({ by: "time", down: false });
  const decoded = useMemo(() => new Map<number, Block[]>(), [spaces]);
  const columns = useMemo((): Column[] => {
    const row = (i: number) => spaces.changes[i]!;
    const name = (i: number) => {
      const c = row(i);
      // Which register it is does not depend on the moment.
      const blocks = decoded.get(c.function) ?? decode(spaceAt(spaces, c.function, result.end_fs).bytes);
      decoded.set(c.function, blocks);
      const lowest = [0, 1, 2, 3].find((b) => (((c.old ^ c.new) >>> (8 * b)) & 0xff) !== 0) ?? 0;
      return registerAt(blocks, c.offset + lowest) ?? "–";
    };
    return [
      { key: "time", name: "time", number: true, text: (i) => instant(row(i).time_fs, 1e6), value: (i) => row(i).time_fs },
      { key: "function", name: "function", number: false, text: (i) => labelOf(spaces.functions[row(i).function]!), value: (i) => row(i).function },
      { key: "offset", name: "offset", number: true, text: (i) => `0x${hex(row(i).offset, 3)}`, value: (i) => row(i).offset },
      { key: "register", name: "register", number: false, text: name, value: name },
      { key: "old", name: "before", number: true, text: (i) => hex(row(i).old, 8), value: (i) => row(i).old },
      { key: "new", name: "afterwards", number: true, text: (i) => hex(row(i).new, 8), value: (i) => row(i).new },
      { key: "by", name: "by", number: false, text: (i) => BY[row(i).by], value: (i) => row(i).by },
    ];
  }, [result, spaces]);
  const left = useMemo(() => spaces.changes.flatMap((c, i) => (all || c.function === at ? [i] : [])), [spaces, all, at]);
  const chosen = useMemo(() => left.filter((i) => spaces.changes[i]!.function === at && spaces.changes[i]!.time_fs <= moment).at(-1) ?? null, [left, at, moment]);
  if (spaces.changes.length === 0) return <p class="note">No register of any function changed during the run.</p>;
  return (
    <>
      <p class="note counted"><label><input type="checkbox" checked={all} onChange={(e) => setAll(e.currentTarget.checked)} /> changes of all functions</label> · {left.length === 0 ? `None of this function; ${count(spaces.changes.length)} of others.` : plural(left.length, "change")}</p>
      {left.length > 0 && (
        <LongTable label="Changes of registers" line="Change at" columns={columns} count={spaces.changes.length} left={left} sort={sort} chosen={chosen} onSort={setSort}
          onChoose={(i) => onChoose(spaces.changes[i]!)} />
      )}
    </>
  );
}
