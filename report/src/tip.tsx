/** One tooltip for the page, shown on hover, on focus and on tap. */
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { ComponentChildren, TargetedFocusEvent, TargetedPointerEvent } from "preact";

interface Shown {
  content: ComponentChildren;
  x: number;
  y: number;
}

let show: (tip: Shown | null) => void = () => {};

/** Handlers that show `content` beside the element they are spread on. */
export function tip(content: () => ComponentChildren) {
  const at = (e: Event, x: number, y: number) => show({ content: content(), x, y: y + (e.type === "focus" ? 4 : 0) });
  return {
    onPointerEnter: (e: TargetedPointerEvent<Element>) => at(e, e.clientX, e.clientY),
    onPointerMove: (e: TargetedPointerEvent<Element>) => at(e, e.clientX, e.clientY),
    onPointerLeave: () => show(null),
    onFocus: (e: TargetedFocusEvent<Element>) => {
      if (!e.currentTarget.matches(":focus-visible")) return;
      const box = e.currentTarget.getBoundingClientRect();
      at(e, box.left + Math.min(box.width / 2, 120), box.bottom);
    },
    onBlur: () => show(null),
  };
}

/** Shows or hides the tooltip directly, for canvases. */
export const showTip = (content: ComponentChildren, x: number, y: number): void => show({ content, x, y });
export const hideTip = (): void => show(null);

export function Tip() {
  const [shown, set] = useState<Shown | null>(null);
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    show = set;
    const hide = () => set(null);
    const key = (e: KeyboardEvent) => e.key === "Escape" && hide();
    addEventListener("scroll", hide, { passive: true });
    addEventListener("keydown", key);
    return () => {
      removeEventListener("scroll", hide);
      removeEventListener("keydown", key);
    };
  }, []);
  useLayoutEffect(() => {
    const el = box.current;
    if (!el || !shown) return;
    const { width, height } = el.getBoundingClientRect();
    const left = Math.max(8, Math.min(shown.x + 14, innerWidth - width - 8));
    const below = shown.y + 16 + height < innerHeight - 8;
    el.style.transform = `translate(${left}px, ${below ? shown.y + 16 : Math.max(8, shown.y - height - 14)}px)`;
  });
  return shown && <div class="tip" role="tooltip" ref={box}>{shown.content}</div>;
}

/** Lines of a tooltip: a colour, a name, a figure. */
export function TipRows({ rows }: { rows: { colour?: string | undefined; name: string; value: string }[] }) {
  return (
    <dl class="tip-rows">
      {rows.map((r) => (
        <div key={r.name}>
          <dt>{r.colour && <i class="dot" style={{ background: r.colour }} />}{r.name}</dt>
          <dd>{r.value}</dd>
        </div>
      ))}
    </dl>
  );
}
