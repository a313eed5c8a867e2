/** What is drawn: which picture, and what is on its axes. */
import type { Points } from "./points";
import { COLOURS, type Chosen, type Kind } from "./state";

interface Props {
  points: Points;
  /** Axes of which the study has several values. */
  vary: number[];
  chosen: Chosen;
  change: (to: Partial<Chosen>) => void;
}

const KINDS: [Kind, string][] = [["lines", "Lines"], ["map", "Map"], ["front", "Front"]];

/** A choice in a list. Figures that the study shows come first. */
function Select(p: { label: string; value: number; options: [number, string][]; more?: [number, string][] | undefined; set: (to: number) => void }) {
  const option = ([value, name]: [number, string]) => <option key={value} value={value}>{name}</option>;
  return (
    <label>
      <span>{p.label}</span>
      <select value={p.value} onChange={(e) => p.set(Number(e.currentTarget.value))}>
        {p.more ? <><optgroup label="of the study">{p.options.map(option)}</optgroup><optgroup label="all">{p.more.map(option)}</optgroup></> : p.options.map(option)}
      </select>
    </label>
  );
}

export function Controls({ points, vary, chosen, change }: Props) {
  const { study } = points;
  const axes = (of: number[]): [number, string][] => of.map((a) => [a, study.axes[a]!.name]);
  const figures = (shown: boolean): [number, string][] => study.figures.flatMap((figure, f) => (figure.shown === shown ? [[f, figure.name]] : []));
  const figure = (label: string, key: "y" | "across") => (
    <Select label={label} value={chosen[key]} options={figures(true)} more={figures(false)}
      set={(to) => change({ [key]: to, ...(key === "y" ? { yMore: study.figures[to]!.more ?? true } : { xMore: study.figures[to]!.more ?? true }) })} />
  );
  const better = (key: "xMore" | "yMore") => (
    <label><span>better is</span><select value={chosen[key] ? "more" : "less"} onChange={(e) => change({ [key]: e.currentTarget.value === "more" })}><option>more</option><option>less</option></select></label>
  );
  const usable = (kind: Kind) => (kind === "map" ? vary.length > 1 : kind === "front" ? study.figures.length > 1 : vary.length > 0);
  const x = <Select label="from left to right" value={chosen.x} options={axes(vary)} set={(to) => change({ x: to, ...(to === chosen.up ? { up: chosen.x } : {}), ...(to === chosen.colour ? { colour: chosen.x } : {}) })} />;
  const none: [number, string] = [-1, "–"];
  const colour = <Select label="colour" value={chosen.colour} options={[none, ...axes(vary.filter((a) => chosen.kind === "front" || a !== chosen.x))]} set={(to) => change({ colour: to, ...(to === chosen.beside ? { beside: -1 } : {}) })} />;
  const few = vary.filter((a) => points.axes[a]!.values.length <= 3 * COLOURS);
  const taken = chosen.kind === "map" ? [chosen.x, chosen.up] : [chosen.x, chosen.colour];
  const beside = <Select label="a picture for each" value={chosen.beside} options={[none, ...axes(few.filter((a) => !taken.includes(a)))]} set={(to) => change({ beside: to })} />;
  return (
    <div class="controls">
      <div class="picker" role="radiogroup" aria-label="Picture">
        {KINDS.map(([kind, name]) => (
          <button key={kind} type="button" role="radio" aria-checked={chosen.kind === kind} disabled={!usable(kind)} onClick={() => change({ kind, logX: null, logY: null })}>{name}</button>
        ))}
      </div>
      <div class="choices">
        {chosen.kind === "lines" && <>{figure("figure", "y")}{x}{colour}{beside}</>}
        {chosen.kind === "map" && (
          <>
            {figure("colour", "y")}{x}
            <Select label="from bottom to top" value={chosen.up} options={axes(vary)} set={(to) => change({ up: to, ...(to === chosen.x ? { x: chosen.up } : {}) })} />
            {beside}
          </>
        )}
        {chosen.kind === "front" && <>{figure("from left to right", "across")}{better("xMore")}{figure("from bottom to top", "y")}{better("yMore")}{colour}</>}
      </div>
    </div>
  );
}
