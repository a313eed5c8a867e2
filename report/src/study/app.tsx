/**
 * The page of a study, from the answer to the detail: what it found; its points as lines, a map or a front; all of a point; the points in a
 * table; and what could not be run.
 */
import { useEffect, useMemo, useState } from "preact/hooks";
import { count, plural } from "../format";
import { Empty, Section } from "../section";
import { Tip } from "../tip";
import { Controls } from "./controls";
import type { StudyDocument } from "./document";
import { Filters } from "./filters";
import { DASHES, nameWith, pictureOf, type Panel, type Picture } from "./picture";
import { Plot } from "./plot";
import { filtered, pointsOf, varying, type Points } from "./points";
import { PointView } from "./point";
import { GRADIENT, valueColour } from "./ramp";
import { COLOURS, fromHash, toHash, usual, type Chosen } from "./state";
import { Table } from "./table";
import { setting, written } from "./units";

export function App({ study }: { study: StudyDocument }) {
  const points = useMemo(() => pointsOf(study), [study]);
  const base = useMemo(() => usual(points), [points]);
  const [chosen, setChosen] = useState<Chosen>(() => fromHash(points, location.hash, base));
  const change = (to: Partial<Chosen>) => setChosen((now) => ({ ...now, ...to }));
  const vary = useMemo(() => varying(points, Array.from({ length: points.count }, (_, p) => p)), [points]);
  const left = useMemo(() => filtered(points, chosen.kept), [points, chosen.kept]);
  useEffect(() => {
    const hash = toHash(points, chosen, base);
    history.replaceState(null, "", hash ? `#${hash}` : location.pathname + location.search);
  }, [chosen]);
  useEffect(() => {
    const read = () => setChosen(fromHash(points, location.hash, base));
    addEventListener("hashchange", read);
    return () => removeEventListener("hashchange", read);
  }, [points]);
  const choose = (point: number) => {
    change({ point });
    requestAnimationFrame(() => document.getElementById("point")?.scrollIntoView({ block: "nearest", behavior: "smooth" }));
  };
  return (
    <>
      <a class="skip" href="#picture">Skip to the picture</a>
      <main class="study">
        <Headline points={points} />
        {points.count > 0 && vary.length > 0 && study.figures.length > 0 && (
          <Section id="picture" title="Picture" hint={`${left.length === points.count ? plural(points.count, "point") : `${count(left.length)} of ${plural(points.count, "point")}`}. Point at a mark to read its values; click for all figures.`}
            aside={chosen.kept.size > 0 && <button type="button" class="more" onClick={() => change({ kept: new Map() })}>Show all points</button>}>
            <Controls points={points} vary={vary} chosen={chosen} change={change} />
            <Filters points={points} vary={vary} chosen={chosen} change={change} />
            <Drawn points={points} left={left} chosen={chosen} change={change} choose={choose} />
          </Section>
        )}
        {chosen.point >= 0 && <PointView points={points} point={chosen.point} onClose={() => change({ point: -1 })} />}
        {points.count > 0 && <Table points={points} left={left} chosen={chosen} change={change} choose={choose} />}
        <Trouble points={points} choose={choose} />
      </main>
      <Tip />
    </>
  );
}

function Headline({ points }: { points: Points }) {
  const { title, about, finding, changed, left_out, every } = points.study;
  const out = left_out.filter(([, n]) => n > 0);
  return (
    <header class="headline">
      <p class="eyebrow"><b>tlplab</b>{finding && <span>{title}</span>}<span>{plural(points.count, "point")}{points.repeated ? `, ${plural(points.study.rows, "run")}` : ""}</span>
        {out.length > 0 && <span>left out: {out.map(([name, n]) => `${name} (${count(n)})`).join(", ")}</span>}</p>
      {finding && !finding.holds && <p class="warn">The study's finding does not hold:</p>}
      <h1>{finding ? finding.says : title}</h1>
      {about && <p class="about">{about}</p>}
      {!every && <p class="note">With this many runs, only the figures that the study names are here. --metrics adds others.</p>}
      {changed.length > 0 && <p class="note">Changed from the study file: {changed.map((c, i) => <>{i > 0 && ", "}<code key={c}>{c}</code></>)}.</p>}
    </header>
  );
}

interface DrawnProps {
  points: Points;
  left: number[];
  chosen: Chosen;
  change: (to: Partial<Chosen>) => void;
  choose: (point: number) => void;
}

function Drawn({ points, left, chosen, change, choose }: DrawnProps) {
  const { kind, x, up, y, across, xMore, yMore, colour, beside, logX, logY } = chosen;
  const picture = useMemo(() => pictureOf(points, left, chosen), [points, left, kind, x, up, y, across, xMore, yMore, colour, beside, logX, logY]);
  const { study } = points;
  const figure = study.figures[y]!;
  if (picture.panels.length === 0) return <Empty>{left.length === 0 ? "No point is left by the filter." : `None of these points has ${figure.name}.`}</Empty>;
  const several = picture.panels.length > 1;
  const many = colour >= 0 ? points.axes[colour]!.values.length : 0;
  const told = [...new Set([...study.figures.flatMap((f, i) => (f.shown ? [i] : [])), y, ...(kind === "front" ? [across] : [])])];
  const along = nameWith(points, left, x);
  const heading = kind === "front" ? `${figure.name} against ${study.figures[across]!.name}` : kind === "map" ? `${figure.name} by ${points.axes[x]!.name} and ${points.axes[up]!.name}` : `${figure.name} along ${points.axes[x]!.name}`;
  return (
    <>
      <Legend points={points} picture={picture} left={left} chosen={chosen} />
      <div class={several ? "small-multiples" : ""}>
        {picture.panels.map((panel) => (
          <figure key={panel.beside}>
            <figcaption><span>{several ? <><b>{points.axes[beside]!.name} {setting(points.axes[beside]!.values[panel.beside]!, points.axes[beside]!.unit)}</b></> : <b>{heading}</b>}</span></figcaption>
            {(kind === "front" || several && kind === "lines") && <p class="axis-name up">{figure.name}{kind === "front" && <small> {yMore ? "more" : "less"} is better</small>}</p>}
            {kind === "map" && <p class="axis-name up">{points.axes[up]!.name}</p>}
            <Plot points={points} panel={panel} label={heading} height={heightOf(panel, several)} many={many} range={picture.range} told={told} unit={figure.unit} chosen={chosen.point} onChoose={choose} />
            <p class="axis-name across">{kind === "front" ? study.figures[across]!.name : along}{kind === "front" && <small> {xMore ? "more" : "less"} is better</small>}</p>
          </figure>
        ))}
      </div>
      <Scales picture={picture} chosen={chosen} change={change} />
      <Notes points={points} picture={picture} chosen={chosen} />
    </>
  );
}

const heightOf = (panel: Panel, several: boolean): number =>
  panel.cells.length > 0 && panel.y.kind === "values" ? Math.max(several ? 200 : 260, Math.min(640, panel.y.shown.length * 34 + 50)) : several ? 260 : 400;

/** Whether the scales are logarithmic. */
function Scales({ picture, chosen, change }: { picture: Picture; chosen: Chosen; change: DrawnProps["change"] }) {
  const [{ x, y }] = picture.panels as [Panel];
  const box = (label: string, key: "logX" | "logY", log: boolean) => (
    <label><input type="checkbox" checked={log} onChange={(e) => change({ [key]: e.currentTarget.checked })} />{label}</label>
  );
  return (
    <div class="toolbar scales">
      {x.kind === "numbers" && (x.low > 0 || x.log || chosen.logX !== null || (x.at?.[0] ?? 0) > 0) && box("logarithmic from left to right", "logX", x.log)}
      {y.kind === "numbers" && box("logarithmic upwards", "logY", y.log)}
      {picture.range && picture.range.low > 0 && box("logarithmic colours", "logY", picture.range.log)}
    </div>
  );
}

function Legend({ points, picture, left, chosen }: { points: Points; picture: Picture; left: number[]; chosen: Chosen }) {
  const axis = points.axes[chosen.colour];
  const bar = (low: string, high: string, name: string) => <div class="ramp"><span>{name}</span><span>{low}</span><i style={{ background: GRADIENT }} /><span>{high}</span></div>;
  if (chosen.kind === "map") {
    const { name, unit } = points.study.figures[chosen.y]!;
    return picture.range && bar(written(picture.range.low, unit), written(picture.range.high, unit), name);
  }
  const shape = chosen.kind === "front" && <li><i class="dot best" />Pareto front</li>;
  if (!axis || chosen.colour === chosen.x && chosen.kind === "lines") return shape ? <ul class="legend">{shape}</ul> : null;
  const many = axis.values.length;
  if (many > COLOURS && axis.unit !== null) return <>{bar(setting(axis.values[0]!, axis.unit), setting(axis.values[many - 1]!, axis.unit), axis.name)}{shape && <ul class="legend">{shape}</ul>}</>;
  const seen = [...new Set(left.map((p) => axis.at[p]!))].sort((a, b) => a - b);
  return (
    <ul class="legend"><li class="quiet">{axis.name}</li>{shape}
      {seen.map((v) => <li key={v}><i class="dot" style={{ "--colour": valueColour(v, many) }} />{setting(axis.values[v]!, axis.unit)}</li>)}
      {picture.dashed >= 0 && <Dashes points={points} axis={picture.dashed} left={left} />}
    </ul>
  );
}

function Dashes({ points, axis, left }: { points: Points; axis: number; left: number[] }) {
  const { name, unit, values, at } = points.axes[axis]!;
  const seen = [...new Set(left.map((p) => at[p]!))].sort((a, b) => a - b);
  return (
    <>
      <li class="quiet">{name}</li>
      {seen.map((v) => <li key={v}><svg class="dashes" width="30" height="8" aria-hidden="true"><line x1="0" x2="30" y1="4" y2="4" stroke-dasharray={DASHES[v]!.join(" ")} /></svg>{setting(values[v]!, unit)}</li>)}
    </>
  );
}

/** What the picture does not say by itself. */
function Notes({ points, picture, chosen }: { points: Points; picture: Picture; chosen: Chosen }) {
  const names = picture.unseen.map((a) => points.axes[a]!.name).join(", ");
  const notes: string[] = [];
  if (chosen.kind === "map" && names) notes.push(`A cell is the mean of its points, which differ by ${names}: choose one of each above to see it alone.`);
  if (chosen.kind === "lines" && names) notes.push(`Lines that look the same differ by ${names}.`);
  if (chosen.kind === "lines" && points.repeated) notes.push("Bands are 95 % confidence intervals of the mean of a point's runs.");
  if (chosen.kind === "front") notes.push("Of the marked points no other is better by one figure and as good by the other.");
  if (picture.missing > 0) notes.push(`${plural(picture.missing, "point")} without this figure ${picture.missing === 1 ? "is" : "are"} not drawn.`);
  return notes.length > 0 ? <p class="note">{notes.join(" ")}</p> : null;
}

/** What was refused and what failed, each message once. */
function Trouble({ points, choose }: { points: Points; choose: (point: number) => void }) {
  const groups = new Map<string, number[]>();
  points.trouble.forEach((trouble, p) => {
    if (trouble) groups.set(`${trouble.kind}: ${trouble.message}`, [...(groups.get(`${trouble.kind}: ${trouble.message}`) ?? []), p]);
  });
  if (groups.size === 0) return null;
  return (
    <Section id="trouble" title="Points that could not be run">
      <ul class="trouble">{[...groups].map(([text, of]) => (
        <li key={text}><b>{plural(of.length, "point")}</b> {text} <button type="button" class="plain" onClick={() => choose(of[0]!)}>Show {of.length === 1 ? "it" : "the first"}</button></li>
      ))}</ul>
    </Section>
  );
}
