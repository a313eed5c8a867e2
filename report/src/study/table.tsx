/** All points that are left, in the order that is wanted. */
import { useMemo } from "preact/hooks";
import { plural } from "../format";
import { LongTable, type Column } from "../long_table";
import { Section } from "../section";
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

export function Table({ points, left, chosen, change, choose }: Props) {
  const columns = useMemo(() => columnsOf(points, chosen, change), [points, chosen.table]);
  const more = points.study.figures.flatMap(({ name }, f) => (chosen.table.includes(f) ? [] : [[f, name] as const]));
  return (
    <Section id="table" title="Points" hint={`${plural(left.length, "point")}. Click a column's name to sort, or a line for all figures of its point.`}
      aside={more.length > 0 && (
        <label class="add"><select aria-label="Add a figure" value="" onChange={(e) => { change({ table: [...chosen.table, Number(e.currentTarget.value)] }); e.currentTarget.value = ""; }}>
          <option value="">Add a figure…</option>{more.map(([f, name]) => <option key={f} value={f}>{name}</option>)}
        </select></label>
      )}>
      <LongTable label="Points" line="Point" columns={columns} count={points.count} left={left} sort={chosen.sort} chosen={chosen.point} onSort={(sort) => change({ sort })} onChoose={choose} />
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
        key: `figure ${name}`, name, number: true, downFirst: true, text: (p) => writtenMean(points.figure(f)[p]!, unit), value: (p) => points.figure(f)[p]?.mean ?? null,
        ...(chosen.table.length > 1 ? { remove: () => change({ table: chosen.table.filter((other) => other !== f) }) } : {}),
      };
    }),
    ...(limited ? [{ key: "limit", name: "limited by", number: false, text: (p: number) => points.limits[p] ?? "–", value: (p: number) => points.limits[p]! }] : []),
    ...(troubled ? [{ key: "trouble", name: "", number: false, text: (p: number) => points.trouble[p]?.kind ?? "", value: (p: number) => points.trouble[p]?.kind ?? null }] : []),
  ];
}
