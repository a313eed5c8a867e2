/** Configuration spaces at a moment: the registers at first with the changes up to then applied. */
import type { ConfigSpaces, RegisterChange } from "./result";

export const BYTES = 4096;

/** The configuration space of a function as the document tells it. */
export interface Space {
  bytes: Uint8Array;
  /** Changes before it were not told one by one: it is that of the gap's beginning. */
  inGap: boolean;
}

export function startOf(spaces: ConfigSpaces, at: number): Uint8Array {
  const bytes = new Uint8Array(BYTES);
  for (const block of spaces.functions[at]!.start) {
    for (let i = 0; 2 * i < block.data.length; i++) bytes[block.offset + i] = parseInt(block.data.slice(2 * i, 2 * i + 2), 16);
  }
  return bytes;
}

/** The changes of a function in the order of time. */
export const changesOf = (spaces: ConfigSpaces, at: number): RegisterChange[] => spaces.changes.filter((c) => c.function === at);

/** The space at a time, after all that changed at that time. */
export function spaceAt(spaces: ConfigSpaces, at: number, time_fs: number): Space {
  const bytes = startOf(spaces, at);
  const view = new DataView(bytes.buffer);
  for (const c of spaces.changes) {
    if (c.time_fs > time_fs) break;
    if (c.function === at) view.setUint32(c.offset, c.new, true);
  }
  const { gap } = spaces.functions[at]!;
  return { bytes, inGap: gap !== null && time_fs >= gap.from_fs && time_fs < gap.to_fs };
}

/** Bytes that changed between two moments, even if they changed back: those after the earlier, up to and with the later. */
export function changedBetween(spaces: ConfigSpaces, at: number, a_fs: number, b_fs: number): Set<number> {
  const [from, to] = [Math.min(a_fs, b_fs), Math.max(a_fs, b_fs)];
  const changed = new Set<number>();
  for (const c of spaces.changes) {
    if (c.function !== at || c.time_fs <= from || c.time_fs > to) continue;
    for (let i = 0; i < 4; i++) if ((((c.old ^ c.new) >>> (8 * i)) & 0xff) !== 0) changed.add(c.offset + i);
  }
  return changed;
}

/** Lines of 16 bytes that hold something or changed; null for one or more lines between them that do not. */
export function dumpLines(bytes: Uint8Array, changed: ReadonlySet<number>): (number | null)[] {
  const lines: (number | null)[] = [];
  for (let at = 0; at < BYTES; at += 16) {
    const holds = at < 64 || Array.from({ length: 16 }, (_, i) => at + i).some((i) => bytes[i] !== 0 || changed.has(i));
    if (holds) lines.push(at);
    else if (lines[lines.length - 1] !== null) lines.push(null);
  }
  return lines;
}
