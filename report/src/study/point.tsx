/** A point: all that is known of it, and how to see its run. */
import { useMemo, useState } from "preact/hooks";
import { plural } from "../format";
import { Section } from "../section";
import { TipRows } from "../tip";
import { commandOf, type Points } from "./points";
import { openReport } from "./report";
import { setting, writtenMean } from "./units";

const settings = (points: Points, point: number) =>
  points.axes.map(({ name, unit, values, at }) => ({ name, value: setting(values[at[point]!]!, unit) }));

/** More points in one place than this are named only. */
const TOLD = 1;
const NAMED = 6;

/** What a tooltip says of the points in one place. */
export function PointTip({ points, of, told }: { points: Points; of: number[]; told: number[] }) {
  return (
    <>
      {of.slice(0, TOLD).map((p) => (
        <div key={p}>
          <b>Point {points.numbers[p]}</b>{points.runs[p]! > 1 && <small> mean of {points.runs[p]} runs</small>}
          <TipRows rows={settings(points, p)} />
          <TipRows rows={told.map((f) => ({ name: points.study.figures[f]!.name, value: writtenMean(points.figure(f)[p]!, points.study.figures[f]!.unit) }))} />
          {points.limits[p] && <p>limited by {points.limits[p]}</p>}
        </div>
      ))}
      {of.length > TOLD && <p>{plural(of.length - TOLD, "more point")} here: {of.slice(TOLD, TOLD + NAMED).map((p) => points.numbers[p]).join(", ")}{of.length > TOLD + NAMED && ", …"}</p>}
    </>
  );
}

export function PointView({ points, point, onClose }: { points: Points; point: number; onClose: () => void }) {
  const [wanted, setWanted] = useState("");
  const { study } = points;
  const trouble = points.trouble[point]!;
  const rows = useMemo(() => {
    const words = wanted.toLowerCase().split(/\s+/).filter(Boolean);
    return study.figures.flatMap(({ name, unit, shown }, f) => {
      const mean = words.every((w) => name.toLowerCase().includes(w)) ? points.figure(f)[point]! : null;
      return mean ? [{ f, name, unit, shown, mean }] : [];
    }).sort((a, b) => Number(b.shown) - Number(a.shown));
  }, [study, point, wanted]);
  return (
    <Section id="point" title={`Point ${points.numbers[point]}`} hint={points.runs[point]! > 1 ? `Means of ${points.runs[point]} runs, with their 95 % intervals.` : undefined}
      aside={<button type="button" class="more" onClick={onClose}>Close</button>}>
      <dl class="facts">{settings(points, point).map(({ name, value }) => <div key={name}><dt>{name}</dt><dd>{value}</dd></div>)}</dl>
      {points.limits[point] && <p class="note">limited by {points.limits[point]}</p>}
      {trouble && <p class="warn">{trouble.kind}: {trouble.message}</p>}
      <Report points={points} point={point} />
      {points.runs[point]! > 0 && (
        <>
          <div class="toolbar"><input class="find" type="search" placeholder="Find a figure, as in nic p99" aria-label="Find a figure" value={wanted} onInput={(e) => setWanted(e.currentTarget.value)} /><span class="status">{plural(rows.length, "figure")}</span></div>
          <div class="figures" tabIndex={0} role="group" aria-label="Figures of the point">
            <dl>{rows.map(({ f, name, unit, shown, mean }) => (
              <div key={f} class={shown ? "shown" : ""}>
                <dt>{name}</dt>
                <dd>{writtenMean(mean, unit)}{points.runs[point]! > 1 && <small>{points.runsOf(f, point).length > 1 && spread(points.runsOf(f, point), unit)}</small>}</dd>
              </div>
            ))}</dl>
          </div>
        </>
      )}
    </Section>
  );
}

/** From the least to the most of several runs. */
function spread(values: number[], unit: string): string {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  return low === high ? "all the same" : `${writtenMean({ mean: low, half: null }, unit)} – ${writtenMean({ mean: high, half: null }, unit)}`;
}

/** The report of a point's run: opened, where it is in the page; otherwise the command that makes it. */
function Report({ points, point }: { points: Points; point: number }) {
  const [said, setSaid] = useState("");
  const number = String(points.numbers[point]);
  const command = commandOf(points, point);
  const { reports } = points.study;
  if (command === null) return null;
  const copy = () => void navigator.clipboard.writeText(command).then(() => setSaid("Copied"), () => setSaid(""));
  const seed = points.runs[point]! > 1 ? ` of the run with seed ${points.seeds[point]}` : "";
  return (
    <div class="report">
      {reports?.results[number] !== undefined
        ? <p><button type="button" class="open" onClick={() => void openReport(reports, number).catch((e: Error) => setSaid(e.message))}>Open the report{seed}</button>{said && said !== "Copied" && <span class="warn"> {said}</span>}</p>
        : <p class="hint">Its report{seed} is written by this command, in the folder in which the study was run:</p>}
      <div class="code">
        <button type="button" onClick={copy}>{said === "Copied" ? said : "Copy"}</button>
        <pre tabIndex={0} aria-label="Command"><code>{command}</code></pre>
      </div>
    </div>
  );
}
