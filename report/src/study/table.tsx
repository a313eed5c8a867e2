/** All points that are left, in the order that is wanted; as many as are in sight are made. */
import { useMemo, useRef } from "preact/hooks";
import { plural, px } from "../format";
import { Section } from "../section";
import { useVirtual } from "../virtual";
import type { Points } from "./points";
import type { Chosen } from "./state";
import { setting, writtenMean } from "./units";

interface Props {
  points: Points;
  left: number[];
  chosen: Chosen;
  change: (to: Partial<Chosen>) => void;
  choose: (point: number) => void;
}

interface Column {
  key: string;
  name: string;
  number: boolean;
  text: (point: number) => string;
  /** What it is sorted by; null comes last whichever way. */
  value: (point: number) => number | string | null;
  remove?: () => void;
}

const ROW = 34;
const CHARACTER = 8.3;

export function Table({ points, left, chosen, change, choose }: Props) {
  const columns = useMemo(() => columnsOf(points, chosen, change), [points, chosen.table]);
  const sorted = useMemo(() => order(left, columns.find((c) => c.key === chosen.sort.by), chosen.sort.down), [left, columns, chosen.sort]);
  const sizes = useMemo(() => new Array<number>(sorted.length).fill(ROW), [sorted]);
  const widths = useMemo(() => columns.map((c, i) => widthOf(c, points.count) + (i === 0 ? 20 : 0)), [columns]);
  const scroller = useRef<HTMLDivElement>(null);
  const virtual = useVirtual(scroller, sizes, 0);
  const items = virtual.getVirtualItems();
  const total = virtual.getTotalSize();
  const [before, after] = items.length > 0 ? [items[0]!.start, total - items[items.length - 1]!.end] : [0, 0];
  const sort = (c: Column) => change({ sort: { by: c.key, down: chosen.sort.by === c.key ? !chosen.sort.down : c.number && c.key.startsWith("figure ") } });
  const more = points.study.figures.flatMap(({ name }, f) => (chosen.table.includes(f) ? [] : [[f, name] as const]));
  return (
    <Section id="table" title="Points" hint={`${plural(left.length, "point")}. A click on a column's name sorts, on a line shows all of a point.`}
      aside={more.length > 0 && (
        <label class="add"><select aria-label="Add a figure" value="" onChange={(e) => { change({ table: [...chosen.table, Number(e.currentTarget.value)] }); e.currentTarget.value = ""; }}>
          <option value="">Add a figure…</option>{more.map(([f, name]) => <option key={f} value={f}>{name}</option>)}
        </select></label>
      )}>
      <div class="points scroller" ref={scroller} tabIndex={0} role="group" aria-label="Points">
        <table style={{ width: px(widths.reduce((a, b) => a + b, 0)) }}>
          <colgroup>{widths.map((w, i) => <col key={i} style={{ width: px(w) }} />)}</colgroup>
          <thead>
            <tr>{columns.map((c) => (
              <th key={c.key} class={c.number ? "number" : ""} aria-sort={chosen.sort.by !== c.key ? "none" : chosen.sort.down ? "descending" : "ascending"}>
                <button type="button" class="plain" title={c.name} onClick={() => sort(c)}>{c.name}{chosen.sort.by === c.key ? (chosen.sort.down ? " ↓" : " ↑") : ""}</button>
                {c.remove && <button type="button" class="remove" aria-label={`Take ${c.name} away`} title={`Take ${c.name} away`} onClick={c.remove}>×</button>}
              </th>
            ))}</tr>
          </thead>
          <tbody>
            {before > 0 && <tr aria-hidden="true" style={{ height: px(before) }} />}
            {items.map(({ index }) => {
              const p = sorted[index]!;
              return (
                <tr key={p} class={p === chosen.point ? "chosen" : ""} onClick={() => choose(p)}>
                  {columns.map((c, i) => i === 0
                    ? <th key={c.key} scope="row"><button type="button" class="plain" aria-label={`Point ${c.text(p)}`}>{c.text(p)}</button></th>
                    : <td key={c.key} class={c.number ? "number" : ""}>{c.text(p)}</td>)}
                </tr>
              );
            })}
            {after > 0 && <tr aria-hidden="true" style={{ height: px(after) }} />}
          </tbody>
        </table>
      </div>
    </Section>
  );
}

function columnsOf(points: Points, chosen: Chosen, change: Props["change"]): Column[] {
  const { study } = points;
  const troubled = points.trouble.some((t) => t !== null);
  const limited = points.limits.some((l) => l !== null);
  return [
    { key: "point", name: "point", number: false, text: (p) => String(points.numbers[p]), value: (p) => p },
    ...points.axes.map(({ name, unit, values, at }): Column => ({ key: `axis ${name}`, name, number: unit !== null, text: (p) => setting(values[at[p]!]!, unit), value: (p) => at[p]! })),
    ...chosen.table.map((f): Column => {
      const { name, unit } = study.figures[f]!;
      return {
        key: `figure ${name}`, name, number: true, text: (p) => writtenMean(points.figure(f)[p]!, unit), value: (p) => points.figure(f)[p]?.mean ?? null,
        ...(chosen.table.length > 1 ? { remove: () => change({ table: chosen.table.filter((other) => other !== f) }) } : {}),
      };
    }),
    ...(limited ? [{ key: "limit", name: "limited by", number: false, text: (p: number) => points.limits[p] ?? "–", value: (p: number) => points.limits[p]! }] : []),
    ...(troubled ? [{ key: "trouble", name: "", number: false, text: (p: number) => points.trouble[p]?.kind ?? "", value: (p: number) => points.trouble[p]?.kind ?? null }] : []),
  ];
}

/** Points by a column; those that are equal stay in their order. */
export function order(of: readonly number[], column: Pick<Column, "value"> | undefined, down: boolean): number[] {
  if (!column) return [...of];
  const keyed = of.map((p) => [p, column.value(p)] as const);
  const compare = (a: number | string, b: number | string) => (a < b ? -1 : a > b ? 1 : 0) * (down ? -1 : 1);
  return keyed.sort(([p, a], [q, b]) => (a === null || b === null ? Number(a === null) - Number(b === null) : compare(a, b)) || p - q).map(([p]) => p);
}

/** Wide enough for its name and for what some of its cells hold. */
function widthOf(column: Column, count: number): number {
  let longest = column.name.length + (column.remove ? 4 : 2);
  const step = Math.max(1, Math.floor(count / 200));
  for (let p = 0; p < count; p += step) longest = Math.max(longest, column.text(p).length);
  return Math.min(340, longest * CHARACTER + 20);
}
