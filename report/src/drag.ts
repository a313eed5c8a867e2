/** Dragging a range along a time axis with mouse, pen or finger; vertical movement still scrolls the page. */

export interface Drag {
  /** While dragging: both ends in pixels from the element's left edge. */
  move(a: number, b: number): void;
  /** At the end; `null` when it was a click or was broken off. */
  end(range: [number, number] | null): void;
}

const CLICK_PX = 5;

/** Listens on `element` until the returned function is called. */
export function onDrag(element: HTMLElement | SVGElement, drag: Drag): () => void {
  element.style.touchAction = "pan-y";
  let from: number | null = null;
  const x = (e: PointerEvent) => {
    const box = element.getBoundingClientRect();
    return Math.max(0, Math.min(box.width, e.clientX - box.left));
  };
  const down = (e: PointerEvent) => {
    if (e.button !== 0) return;
    from = x(e);
    element.setPointerCapture(e.pointerId);
  };
  const move = (e: PointerEvent) => {
    if (from !== null) drag.move(Math.min(from, x(e)), Math.max(from, x(e)));
  };
  const up = (e: PointerEvent) => {
    if (from === null) return;
    const range: [number, number] = [Math.min(from, x(e)), Math.max(from, x(e))];
    from = null;
    drag.end(range[1] - range[0] >= CLICK_PX ? range : null);
  };
  const cancel = () => {
    if (from !== null) drag.end(null);
    from = null;
  };
  const target = element as HTMLElement;
  target.addEventListener("pointerdown", down);
  target.addEventListener("pointermove", move);
  target.addEventListener("pointerup", up);
  target.addEventListener("pointercancel", cancel);
  return () => {
    target.removeEventListener("pointerdown", down);
    target.removeEventListener("pointermove", move);
    target.removeEventListener("pointerup", up);
    target.removeEventListener("pointercancel", cancel);
  };
}
