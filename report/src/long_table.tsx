/** A long table that is sorted by a click on a column's name; as many lines as are in sight are made. */
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { px } from "./format";
import { useVirtual } from "./virtual";

export interface Column {
  key: string;
  name: string;
  number: boolean;
  text: (row: number) => string;
  /** How a cell is drawn; as its text if absent. */
  show?: (row: number) => ComponentChildren;
  /** What it is sorted by; null comes last whichever way. */
  value: (row: number) => number | string | null;
  /** The largest values first, when it is sorted by anew. */
  downFirst?: boolean;
  remove?: () => void;
}

export interface Sort {
  by: string;
  down: boolean;
}

interface Props {
  label: string;
  /** What a line is called: `Point`. */
  line: string;
  columns: Column[];
  /** How many rows there are at all; widths are found from some of them. */
  count: number;
  /** Those that are left, in any order. */
  left: number[];
  sort: Sort;
  chosen: number | null;
  /** Scrolls to the chosen line whenever it is another object. */
  reveal?: object | null;
  onSort: (sort: Sort) => void;
  onChoose: (row: number) => void;
}

const ROW = 34;
const CHARACTER = 8.3;

export function LongTable({ label, line, columns, count, left, sort, chosen, reveal, onSort, onChoose }: Props) {
  const sorted = useMemo(() => order(left, columns.find((c) => c.key === sort.by), sort.down), [left, columns, sort]);
  const sizes = useMemo(() => new Array<number>(sorted.length).fill(ROW), [sorted]);
  const widths = useMemo(() => columns.map((c, i) => widthOf(c, count) + (i === 0 ? 20 : 0)), [columns]);
  const scroller = useRef<HTMLDivElement>(null);
  const virtual = useVirtual(scroller, sizes, 0);
  const items = virtual.getVirtualItems();
  const total = virtual.getTotalSize();
  const [before, after] = items.length > 0 ? [items[0]!.start, total - items[items.length - 1]!.end] : [0, 0];
  const turn = (c: Column) => onSort({ by: c.key, down: sort.by === c.key ? !sort.down : c.downFirst === true });
  const wanted = reveal && chosen !== null ? sorted.indexOf(chosen) : -1;
  useLayoutEffect(() => {
    if (wanted >= 0 && scroller.current) scroller.current.scrollTop = Math.max(0, (wanted + 1) * ROW - scroller.current.clientHeight / 2);
  }, [reveal, wanted >= 0]);
  return (
    <div class="listed scroller" ref={scroller} tabIndex={0} role="group" aria-label={label}>
      <table style={{ width: px(widths.reduce((a, b) => a + b, 0)) }}>
        <colgroup>{widths.map((w, i) => <col key={i} style={{ width: px(w) }} />)}</colgroup>
        <thead>
          <tr>{columns.map((c) => (
            <th key={c.key} class={c.number ? "number" : ""} aria-sort={sort.by !== c.key ? "none" : sort.down ? "descending" : "ascending"}>
              <button type="button" class="plain" title={c.name} onClick={() => turn(c)}>{c.name}{sort.by === c.key ? (sort.down ? " ↓" : " ↑") : ""}</button>
              {c.remove && <button type="button" class="remove" aria-label={`Take ${c.name} away`} title={`Take ${c.name} away`} onClick={c.remove}>×</button>}
            </th>
          ))}</tr>
        </thead>
        <tbody>
          {before > 0 && <tr aria-hidden="true" style={{ height: px(before) }} />}
          {items.map(({ index }) => {
            const row = sorted[index]!;
            return (
              <tr key={row} class={row === chosen ? "chosen" : ""} onClick={() => onChoose(row)}>
                {columns.map((c, i) => i === 0
                  ? <th key={c.key} scope="row" class={c.number ? "number" : ""}><button type="button" class="plain" aria-label={`${line} ${c.text(row)}`}>{c.text(row)}</button></th>
                  : <td key={c.key} class={c.number ? "number" : ""}>{c.show ? c.show(row) : c.text(row)}</td>)}
              </tr>
            );
          })}
          {after > 0 && <tr aria-hidden="true" style={{ height: px(after) }} />}
        </tbody>
      </table>
    </div>
  );
}

/** Rows by a column; those that are equal stay in their order. */
export function order(of: readonly number[], column: Pick<Column, "value"> | undefined, down: boolean): number[] {
  if (!column) return [...of];
  const keyed = of.map((p) => [p, column.value(p)] as const);
  const compare = (a: number | string, b: number | string) => (a < b ? -1 : a > b ? 1 : 0) * (down ? -1 : 1);
  return keyed.sort(([p, a], [q, b]) => (a === null || b === null ? Number(a === null) - Number(b === null) : compare(a, b)) || p - q).map(([p]) => p);
}

/** Wide enough for its name and for what some of its cells hold. */
function widthOf(column: Column, count: number): number {
  let longest = column.name.length + (column.remove ? 4 : 3);
  const step = Math.max(1, Math.floor(count / 200));
  for (let row = 0; row < count; row += step) longest = Math.max(longest, column.text(row).length);
  return Math.min(340, longest * CHARACTER + 20);
}
