/** The tree of host, switches, buses and devices; each link, and each way over a bus, shows how both directions spent their time. */
import { stratify, tree, type HierarchyPointNode } from "d3-hierarchy";
import { useMemo } from "preact/hooks";
import { busUse, busy, utilization } from "./derive";
import { percent, px, rate } from "./format";
import { BUSY, PART_NAMES, PARTS, partColour, type Part } from "./palette";
import { LinkTable } from "./links";
import type { Node, Result, Utilization } from "./result";
import { Empty, Section } from "./section";
import { TipRows, tip } from "./tip";
import { useWidth } from "./hooks";
import type { View } from "./view";

const NODE_W = 138;
const NODE_H = 46;
const ROW = 74;
/** In trees of more than {@link MANY} leaves. */
const CLOSE_ROW = 60;
const MANY = 16;
const LINK_GAP = 218;
/** Links are drawn longer than needed where there is room, up to this. */
const LONG_GAP = 330;
const PLAIN_GAP = 36;

interface Layout {
  nodes: Placed[];
  width: number;
  height: number;
  linkGap: number;
}

interface Placed {
  node: Node;
  link: number | null;
  depth: number;
  x: number;
  y: number;
  parent: Placed | null;
}

/** Columns by depth; a column is wide where links lead into it, narrow where only root ports hang on their host. */
function place(result: Result, room: number): Layout {
  const parents = stratify<Node>().id((n) => n.name).parentId((n) => n.parent)(result.topology.nodes);
  const row = parents.leaves().length > MANY ? CLOSE_ROW : ROW;
  const root = tree<Node>().nodeSize([row, 1]).separation((a, b) => (a.parent === b.parent ? 1 : 1.15))(parents);
  const links = new Map(result.links.map((l, i) => [l.lower, i]));
  const all = root.descendants();
  const linked = Array.from({ length: root.height + 1 }, (_, d) => all.some((n) => n.depth === d && links.has(n.data.name)));
  const needed = linked.reduce((sum, l, d) => sum + NODE_W + (d === 0 ? 0 : l ? LINK_GAP : PLAIN_GAP), 0);
  const spare = Math.floor((room - needed) / Math.max(1, linked.filter(Boolean).length));
  const linkGap = Math.min(LONG_GAP, LINK_GAP + Math.max(0, spare));
  const gaps = linked.map((l) => (l ? linkGap : PLAIN_GAP));
  const column = (depth: number) => gaps.slice(1, depth + 1).reduce((sum, g) => sum + g + NODE_W, 0);
  const top = Math.min(...all.map((n) => n.x));
  const placed = new Map<HierarchyPointNode<Node>, Placed>();
  root.eachBefore((n) => {
    placed.set(n, {
      node: n.data, link: links.get(n.data.name) ?? null, depth: n.depth, x: column(n.depth), y: n.x - top,
      parent: n.parent ? placed.get(n.parent)! : null,
    });
  });
  return { nodes: [...placed.values()], linkGap, width: column(root.height) + NODE_W, height: Math.max(...all.map((n) => n.x)) - top + NODE_H };
}

const HINT = "Each link: towards the host above, away from it below. Choose a link to see only its flows and packets.";
const BUS_HINT = " Devices on a bus share its time; the bus shows the sum.";

export function Topology({ view }: { view: View }) {
  const hint = view.result.links.some((l) => l.bus) ? HINT + BUS_HINT : HINT;
  const [box, width] = useWidth<HTMLDivElement>();
  const layout = useMemo(() => (view.result.topology.nodes.length ? place(view.result, width) : null), [view.result, width]);
  return (
    <Section id="topology" title="Topology" hint={hint} aside={<PartLegend />}>
      <div ref={box} class="topology">
        {!layout ? <Empty>The result names no nodes.</Empty> : width >= layout.width ? <Wide view={view} layout={layout} width={width} /> : <Indented view={view} nodes={layout.nodes} />}
      </div>
      <LinkTable view={view} />
    </Section>
  );
}

function Wide({ view, layout, width }: { view: View; layout: Layout; width: number }) {
  const shift = Math.max(0, Math.floor((width - layout.width) / 2));
  const right = (p: Placed) => p.x + NODE_W;
  const middle = (p: Placed) => p.y + NODE_H / 2;
  return (
    <div class="wide" style={{ width: px(layout.width), height: px(layout.height), marginLeft: px(shift) }}>
      <svg width={layout.width} height={layout.height} aria-hidden="true">
        {layout.nodes.map((p) => {
          if (!p.parent || onBus(p)) return null;
          const [x0, y0, y1] = [right(p.parent), middle(p.parent), middle(p)];
          const x1 = p.link === null ? p.x : x0 + 44;
          const bend = (x0 + x1) / 2;
          return <path key={p.node.name} class="edge" d={`M${x0},${y0}C${bend},${y0} ${bend},${y1} ${x1},${y1}H${p.x}`} />;
        })}
        {layout.nodes.map((p) => {
          const taps = layout.nodes.filter((c) => c.parent === p && onBus(c));
          if (taps.length === 0) return null;
          const [bar, ys] = [right(p) + 20, [p, ...taps].map(middle)];
          return <path key={p.node.name} class="edge bus" d={`M${right(p)},${middle(p)}H${bar}M${bar},${Math.min(...ys) - 12}V${Math.max(...ys) + 12}${taps.map((c) => `M${bar},${middle(c)}H${c.x}`).join("")}`} />;
        })}
      </svg>
      {layout.nodes.map((p) => (
        <div key={p.node.name}>
          {p.link !== null && (
            <div class="at" style={{ left: px(p.x - layout.linkGap + 40), top: px(p.y - (onBus(p) ? 1 : 8)), width: px(layout.linkGap - 48) }}><LinkGauge view={view} link={p.link} /></div>
          )}
          <div class="at" style={{ left: px(p.x), top: px(p.y), width: px(NODE_W), height: px(NODE_H) }}><NodeBox view={view} node={p.node} /></div>
        </div>
      ))}
    </div>
  );
}

function Indented({ view, nodes }: { view: View; nodes: Placed[] }) {
  return (
    <ul class="indented">
      {nodes.map((p) => (
        <li key={p.node.name} class={onBus(p) ? "tap" : undefined} style={{ "--depth": p.depth }}>
          <NodeBox view={view} node={p.node} />
          {p.link !== null && <LinkGauge view={view} link={p.link} />}
        </li>
      ))}
    </ul>
  );
}

const onBus = (p: Placed): boolean => p.parent?.node.kind === "bus";

function NodeBox({ view, node }: { view: View; node: Node }) {
  const what = node.model ? `${node.kind} · ${node.model}` : node.kind;
  const use = node.kind === "bus" ? busUse(view.result, node.name, view.filter.range) : null;
  const off = view.filter.link !== null && !onLink(view, node.name);
  return (
    <div class={`node ${node.kind.replace(" ", "-")}${off ? " off" : ""}`} tabIndex={0} aria-label={`${node.name}, ${what}${use ? `, busy ${percent(busy(use))}` : ""}. ${node.detail}`} {...tip(() => <><b>{node.name}</b><p>{what}</p>{node.detail && <p>{node.detail}</p>}{use && <BusRows use={use} free="idle" />}</>)}>
      <b>{node.name}{use && <em>{percent(busy(use))}</em>}</b><small>{use ? node.model : what}</small>
      {use && <Stack use={use} />}
    </div>
  );
}

function onLink(view: View, node: string): boolean {
  const link = view.result.links[view.filter.link!]!;
  return link.lower === node || link.upper === node;
}

function LinkGauge({ view, link }: { view: View; link: number }) {
  const l = view.result.links[link]!;
  const chosen = view.filter.link === link;
  const upward = l.directions.findIndex((d) => d.from === l.lower);
  const order = upward <= 0 ? [0, 1] : [1, 0];
  const uses = order.map((d) => utilization(view.result, link, d, view.filter.range));
  const spoken = order.map((d, k) => `${l.directions[d]!.from} to ${l.directions[d]!.to} busy ${percent(busy(uses[k]!))}`).join(", ");
  return (
    <button
      type="button" class={`link${view.filter.link !== null && !chosen ? " off" : ""}`} aria-pressed={chosen} data-link={l.name}
      aria-label={`${l.bus ? `Way over the bus, ${l.lower} to ${l.upper}` : `Link ${l.lower} to ${l.upper}, gen ${l.generation} x${l.width}`}: ${spoken}`} onClick={() => view.chooseLink(link)}
      {...tip(() => <LinkTip view={view} link={link} order={order} />)}
    >
      {!l.bus && <span class="spec"><b>gen{l.generation} ×{l.width}</b><span>{l.mode === "flit" ? "flit · " : ""}{rate(l.raw_bps)}</span></span>}
      {uses.map((u, k) => (
        <span class="way" key={k}>
          <i aria-hidden="true">{k === 0 ? "←" : "→"}</i>
          <Stack use={u} />
          <em>{percent(busy(u))}</em>
        </span>
      ))}
    </button>
  );
}

const Stack = ({ use }: { use: Utilization }) => (
  <span class="stack">{BUSY.map((p) => use[p] > 0 && <i key={p} class={p} style={{ width: `${use[p] * 100}%`, background: partColour(p) }} />)}</span>
);

/** What a bus's time went to; `free` is what is left. */
function BusRows({ use, free }: { use: Utilization; free: string }) {
  const rows: [Part, string][] = [["payload", "data"], ["overhead", "other phases"], ["idle", free]];
  return <TipRows rows={rows.map(([p, name]) => ({ colour: partColour(p), name, value: percent(use[p]) }))} />;
}

function LinkTip({ view, link, order }: { view: View; link: number; order: number[] }) {
  const l = view.result.links[link]!;
  return (
    <>
      <b>{l.bus ? `${l.bus}, with all others on ${l.upper}` : `gen${l.generation} ×${l.width}, ${l.mode}, MPS ${l.mps} B`}</b>
      {order.map((d) => {
        const u = utilization(view.result, link, d, view.filter.range);
        return (
          <div key={d}>
            <p>{l.directions[d]!.from} → {l.directions[d]!.to}: {rate(u.payload * l.raw_bps)} of payload</p>
            {l.bus ? <BusRows use={u} free="left to all others" /> : <TipRows rows={PARTS.map((p) => ({ colour: partColour(p), name: PART_NAMES[p], value: percent(u[p]) }))} />}
          </div>
        );
      })}
    </>
  );
}

export function PartLegend() {
  return (
    <ul class="legend" aria-label="Colours of the use of a link">
      {PARTS.map((p) => <li key={p}><i class="dot" style={{ background: partColour(p) }} />{PART_NAMES[p]}</li>)}
    </ul>
  );
}
