/** The part of a long list that is in sight, from @tanstack/virtual-core. */
import { elementScroll, observeElementOffset, observeElementRect, Virtualizer } from "@tanstack/virtual-core";
import { useLayoutEffect, useReducer, useState } from "preact/hooks";
import type { RefObject } from "preact";

export function useVirtual(scroller: RefObject<HTMLDivElement | null>, sizes: readonly number[], paddingStart: number): Virtualizer<HTMLDivElement, Element> {
  const [, redraw] = useReducer((n: number) => n + 1, 0);
  const options = {
    count: sizes.length, getScrollElement: () => scroller.current, estimateSize: (i: number) => sizes[i] ?? 0, paddingStart, overscan: 4,
    observeElementRect, observeElementOffset, scrollToFn: elementScroll, onChange: redraw,
  };
  const [virtualizer] = useState(() => new Virtualizer<HTMLDivElement, Element>(options));
  virtualizer.setOptions(options);
  useLayoutEffect(() => virtualizer._didMount(), []);
  useLayoutEffect(() => virtualizer._willUpdate());
  useLayoutEffect(() => virtualizer.measure(), [sizes]);
  return virtualizer;
}
