/** Invented configuration spaces: a root port and devices with MSI-X, PCI Express and AER, and changes of all kinds. */
import type { ConfigSpaces, FunctionRegisters, RegisterBlock, RegisterChange } from "../src/result";

const word = (value: number): string => [0, 8, 16, 24].map((bit) => ((value >>> bit) & 0xff).toString(16).padStart(2, "0")).join("");
const blocks = (words: Record<number, number>): RegisterBlock[] => Object.entries(words).map(([offset, value]) => ({ offset: Number(offset), data: word(value) }));

/** Status of the AER of all of them. */
export const AER = 0x100;

const bridge = blocks({
  0x00: 0x01_01_71ab, 0x04: 0x0010_0107, 0x08: 0x0604_0000, 0x0c: 0x0001_0000, 0x18: 0x0004_0100, 0x1c: 0x0000_00f0, 0x20: 0xe010_e000, 0x24: 0x0001_fff1, 0x34: 0x40, 0x3c: 0x0002_0100,
  0x40: 0x0142_0010, 0x44: 0x8003, 0x48: 0x0000_201f, 0x4c: 0x0140_0044, 0x50: 0x3044_0008, 0x54: 0x40, 0x58: 0x0040_0000, 0x5c: 0x8,
  [AER]: 0x0001_0001, [AER + 0x0c]: 0x0046_2030, [AER + 0x2c]: 0x7,
});
const device = blocks({
  0x00: 0x0010_71ab, 0x04: 0x0010_0406, 0x08: 0x1200_0001, 0x10: 0xe000_000c, 0x14: 0x1, 0x2c: 0x0010_71ab, 0x34: 0x40, 0x40: 0x8007_5011, 0x44: 0x2000, 0x48: 0x3000,
  0x50: 0x0002_0010, 0x54: 0x1000_8003, 0x58: 0x0000_281f, 0x5c: 0x44, 0x60: 0x0044_0000, [AER]: 0x0001_0001, [AER + 0x0c]: 0x0046_2030,
});

/** The first device refuses a request at a quarter of the run, which software clears at a half; interrupts of the second are too many to be told. */
export function spaces(devices: readonly string[], end_fs: number): ConfigSpaces {
  const functions: FunctionRegisters[] = [
    { name: "host.rp0", function: "00:01.0", start: bridge, gap: null },
    ...devices.map((name, i): FunctionRegisters => ({ name, function: `0${i + 2}:00.0`, start: device, gap: i === 1 ? { from_fs: end_fs * 0.3, to_fs: end_fs * 0.7, count: 1234 } : null })),
  ];
  const change = (func: number, time: number, offset: number, old: number, value: number, by: RegisterChange["by"]): RegisterChange => ({ function: func, time_fs: end_fs * time, offset, old, new: value, by });
  const changes = [
    change(1, 0.25, 0x58, 0x0000_281f, 0x0009_281f, "hardware"),
    change(1, 0.25, AER + 4, 0, 0x0010_0000, "hardware"),
    change(1, 0.5, AER + 4, 0x0010_0000, 0, "write"),
    change(1, 0.5, 0x58, 0x0009_281f, 0x0000_281f, "write"),
    change(1, 0.75, 0x04, 0x0010_0406, 0x0010_0402, "write"),
    ...(devices.length > 1 ? [change(2, 0.1, 0x04, 0x0010_0406, 0x0018_0406, "hardware"), change(2, 0.7, 0x04, 0x0018_0406, 0x0010_0406, "several"), change(2, 0.9, 0x04, 0x0010_0406, 0x0018_0406, "hardware")] : []),
  ];
  return { functions, changes: changes.sort((a, b) => a.time_fs - b.time_fs) };
}
