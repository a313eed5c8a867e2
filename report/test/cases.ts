/** The invented runs: an ordinary one, and the edges. */
import { busRead } from "./bus";
import { mock, type DeviceSpec } from "./mock";
import type { Result } from "../src/result";

const sw = (name: string, under: string, width = 4) => ({ name, under, width });
const quick: DeviceSpec[] = [
  { name: "ssd", under: "sw0", op: "write", size: 4096, share: 1 },
  { name: "nic", under: "sw0", op: "write", size: 1500, share: 0.87, width: 8 },
];

export const CASES: Record<string, () => Result> = {
  quickstart: () => mock({ title: "SSD and NIC share one uplink", switches: [sw("sw0", "host.rp0")], devices: quick }),
  reads: () =>
    mock({
      title: "Reads and writes, two root ports", switches: [sw("sw0", "host.rp0", 8)], limitLink: "sw0", packets: 1200,
      devices: [{ ...quick[0]!, op: "read" }, quick[1]!, { name: "gpu", under: "host.rp1", op: "read", size: 512, share: 2.2, gen: 5, width: 16 }],
    }),
  one: () => mock({ title: "One device, point to point", switches: [], devices: [{ name: "ssd", under: "host.rp0", op: "read", size: 4096, share: 1 }], ladder: false, parts: false }),
  twelve: () =>
    mock({
      title: "Twelve NVMe drives behind three switches", switches: ["a", "b", "c"].map((s, i) => sw(`sw_${s}`, `host.rp${i}`, 8)),
      devices: Array.from({ length: 12 }, (_, i) => ({ name: `nvme${i}`, under: `sw_${"abc"[i % 3]}`, op: i % 4 ? "write" : "read", size: 4096, share: 0.2 + 0.07 * i })),
    }),
  sixty: () =>
    mock({
      title: "Sixty nodes, three levels of switches", switches: [sw("top", "host.rp0", 16), ...Array.from({ length: 7 }, (_, i) => sw(`leaf${i}`, "top", 8))],
      devices: Array.from({ length: 50 }, (_, i) => ({ name: `accelerator${i}`, under: `leaf${i % 7}`, op: i % 2 ? "write" : "read", size: 2048, share: 0.05 + 0.01 * (i % 9) })),
      samples: 4096,
    }),
  long: () =>
    mock({
      title: "Names that are long", switches: [sw("the_switch_of_the_second_socket", "host.rp0")],
      devices: [
        { ...quick[0]!, name: "ssd_of_the_second_socket_that_writes_all_the_time.completion_queue_entries", under: "the_switch_of_the_second_socket" },
        { ...quick[1]!, name: "nic", under: "the_switch_of_the_second_socket" },
      ],
    }),
  ten: () =>
    mock({
      title: "Ten devices, as much as a document of 10 ms has", switches: [sw("sw0", "host.rp0", 16)], samples: 2048, packets: 2000, bins: 300,
      devices: Array.from({ length: 10 }, (_, i) => ({ name: `nvme${i}`, under: "sw0", op: i % 2 ? "write" : "read", size: 4096, share: 0.3 + 0.05 * i })),
    }),
  late: () => {
    const run = mock({ title: "Four milliseconds later", switches: [sw("sw0", "host.rp0")], devices: quick });
    const later = 4e12;
    const { ladder } = run;
    ladder!.from_fs += later;
    ladder!.to_fs += later;
    for (const p of ladder!.packets) for (const key of ["start_fs", "end_fs", "arrive_fs"] as const) p[key] += later;
    for (const t of ladder!.transactions) {
      for (const key of ["start_fs", "end_fs"] as const) t[key] += later;
      for (const i of t.intervals) i.start_fs += later;
    }
    return { ...run, end_fs: run.end_fs + later };
  },
  bus: busRead,
  empty: () => mock({ title: "A run in which nothing happened", switches: [], devices: [{ name: "ssd", under: "host.rp0", op: "read", size: 4096, share: 1 }], empty: true }),
};
