/** The meaning of registers, in the words and abbreviations of `lspci`: header, power management, MSI, MSI-X, PCI Express, AER and a few more. */

/** A register, decoded. */
export interface Register {
  offset: number;
  /** Its bytes. */
  size: number;
  name: string;
  value: string;
}

/** A header or capability with its registers. */
export interface Block {
  offset: number;
  name: string;
  registers: Register[];
}

type Read = (offset: number) => number;

interface Readers {
  r8: Read;
  r16: Read;
  r32: Read;
}

const hex = (value: number | bigint, digits: number): string => value.toString(16).padStart(digits, "0");

/** `I/O+ Mem- …`: bits from the lowest, `_` for those without a name. */
const flags = (value: number, names: string): string =>
  names.split(" ").map((name, bit) => (name === "_" ? "" : name + ((value >>> bit) & 1 ? "+" : "-"))).filter(Boolean).join(" ");

const COMMAND = "I/O Mem BusMaster SpecCycle MemWINV VGASnoop ParErr Stepping SERR FastB2B DisINTx";
const STATUS = "_ _ _ INTx Cap 66MHz _ FastB2B ParErr _ _ >TAbort <TAbort <MAbort >SERR <PERR";
const SECONDARY = "_ _ _ _ _ 66MHz _ FastB2B ParErr _ _ >TAbort <TAbort <MAbort <SERR <PERR";
const BRIDGE = "Parity SERR NoISA VGA VGA16 MAbort >Reset FastB2B";
const DEVICE_CONTROL = "CorrErr NonFatalErr FatalErr UnsupReq RlxdOrd _ _ _ ExtTag PhantFunc AuxPwr NoSnoop _ _ _ FLReset";
const DEVICE_STATUS = "CorrErr NonFatalErr FatalErr UnsupReq AuxPwr TransPend";
const SLOT_CONTROL = "AttnBtn PwrFlt MRL PresDet CmdCplt HPIrq _ _ _ _ _ Interlock LinkChg";
const SLOT_STATUS = "AttnBtn PowerFlt MRL PresDet CmdCplt MRLOpen PresentState Interlock LinkState";
const ROOT_CONTROL = "ErrCorrectable ErrNon-Fatal ErrFatal PMEIntEna RRSVisible";
const UNCORRECTABLE = "_ _ _ _ DLP SDES _ _ _ _ _ _ TLP FCP CmpltTO CmpltAbrt UnxCmplt RxOF MalfTLP ECRC UnsupReq ACSViol UncorrIntErr BlockedTLP AtomicOpBlocked TLPBlockedErr PoisonTLPBlocked";
const CORRECTABLE = "RxErr _ _ _ _ _ BadTLP BadDLLP Rollover _ _ _ Timeout AdvNonFatalErr CorrIntErr HeaderOF";
const ROOT_COMMAND = "CorrErrEn NonFatalErrEn FatalErrEn";
const ROOT_ERRORS = "CorrRcvd MultCorrRcvd UncorRcvd MultUncorRcvd FirstFatal NonFatalMsg FatalMsg";
const ACS = "SrcValid TransBlk ReqRedir CmpltRedir UpstreamFwd EgressCtrl DirectTrans";

const size = (exponent: number): string => `${128 << (exponent & 7)} B`;
const SPEEDS = ["unknown", "2.5 GT/s", "5 GT/s", "8 GT/s", "16 GT/s", "32 GT/s", "64 GT/s", "128 GT/s"];
const speed = (value: number): string => `${SPEEDS[value & 15] ?? `speed ${value & 15}`} x${(value >>> 4) & 63}`;
const bdf = (id: number): string => `${hex(id >>> 8, 2)}:${hex((id >>> 3) & 31, 2)}.${id & 7}`;

const PORTS: Record<number, string> = {
  0: "Endpoint", 1: "Legacy Endpoint", 4: "Root Port", 5: "Upstream Port", 6: "Downstream Port", 7: "PCI Express to PCI/PCI-X Bridge", 8: "PCI/PCI-X to PCI Express Bridge",
  9: "Root Complex Integrated Endpoint", 10: "Root Complex Event Collector",
};
const CAPABILITIES: Record<number, string> = { 1: "Power Management", 5: "MSI", 7: "PCI-X", 9: "Vendor Specific", 13: "Subsystem", 16: "PCI Express", 17: "MSI-X" };
const EXTENDED: Record<number, string> = {
  1: "Advanced Error Reporting", 2: "Virtual Channel", 3: "Device Serial Number", 11: "Vendor Specific Extended", 13: "Access Control Services", 14: "Alternative Routing-ID Interpretation",
  15: "Address Translation Service", 16: "Single Root I/O Virtualization", 21: "Resizable BAR", 24: "Latency Tolerance Reporting", 25: "Secondary PCI Express", 27: "Process Address Space ID",
};

/** The header and every capability that can be reached from it. */
export function decode(bytes: Uint8Array): Block[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const read: Readers = { r8: (o) => view.getUint8(o), r16: (o) => view.getUint16(o, true), r32: (o) => view.getUint32(o, true) };
  return [header(read), ...capabilities(read), ...extended(read)];
}

function header({ r8, r16, r32 }: Readers): Block {
  const bridge = (r8(0x0e) & 0x7f) === 1;
  const out: Register[] = [
    { offset: 0x00, size: 4, name: "Vendor ID, Device ID", value: `${hex(r16(0), 4)}:${hex(r16(2), 4)}` },
    { offset: 0x04, size: 2, name: "Command", value: flags(r16(4), COMMAND) },
    { offset: 0x06, size: 2, name: "Status", value: flags(r16(6), STATUS) },
    { offset: 0x08, size: 4, name: "Revision, Class", value: `rev ${hex(r8(8), 2)}, class ${hex(r16(0x0a), 4)}, prog-if ${hex(r8(9), 2)}` },
    { offset: 0x0c, size: 4, name: "Cache, Latency, Header", value: `${r8(0x0c)}, ${r8(0x0d)}, type ${r8(0x0e) & 0x7f}${r8(0x0e) & 0x80 ? ", multi-function" : ""}` },
    ...bars(r32, bridge ? 2 : 6),
  ];
  if (bridge) {
    out.push(
      { offset: 0x18, size: 4, name: "Bus", value: `primary=${hex(r8(0x18), 2)} secondary=${hex(r8(0x19), 2)} subordinate=${hex(r8(0x1a), 2)}` },
      { offset: 0x1c, size: 2, name: "I/O behind bridge", value: window(BigInt(r8(0x1c) & 0xf0) << 8n, BigInt(r8(0x1d) & 0xf0) << 8n, 0xfffn) },
      { offset: 0x1e, size: 2, name: "Secondary status", value: flags(r16(0x1e), SECONDARY) },
      { offset: 0x20, size: 4, name: "Memory behind bridge", value: window(BigInt(r16(0x20) & 0xfff0) << 16n, BigInt(r16(0x22) & 0xfff0) << 16n, 0xfffffn) },
      {
        offset: 0x24, size: 12, name: "Prefetchable memory behind bridge",
        value: window((BigInt(r32(0x28)) << 32n) | (BigInt(r16(0x24) & 0xfff0) << 16n), (BigInt(r32(0x2c)) << 32n) | (BigInt(r16(0x26) & 0xfff0) << 16n), 0xfffffn),
      },
    );
  } else out.push({ offset: 0x2c, size: 4, name: "Subsystem", value: `${hex(r16(0x2c), 4)}:${hex(r16(0x2e), 4)}` });
  const rom = bridge ? 0x38 : 0x30;
  if (r32(rom) !== 0) out.push({ offset: rom, size: 4, name: "Expansion ROM", value: `${hex((r32(rom) & ~0x7ff) >>> 0, 8)}${r32(rom) & 1 ? "" : " [disabled]"}` });
  const pin = r8(0x3d);
  out.push({ offset: 0x3c, size: 2, name: "Interrupt", value: pin ? `pin ${"ABCD"[pin - 1] ?? pin} routed to IRQ ${r8(0x3c)}` : "no pin" });
  if (bridge) out.push({ offset: 0x3e, size: 2, name: "Bridge control", value: flags(r16(0x3e), BRIDGE) });
  return { offset: 0, name: bridge ? "Header of a bridge (type 1)" : "Header (type 0)", registers: out };
}

function bars(r32: Read, count: number): Register[] {
  const out: Register[] = [];
  for (let i = 0; i < count; i++) {
    const offset = 0x10 + 4 * i;
    const low = r32(offset);
    if (low === 0) continue;
    const name = `BAR ${i}`;
    if (low & 1) out.push({ offset, size: 4, name, value: `I/O ports at ${hex((low & ~3) >>> 0, 4)}` });
    else {
      const wide = (low & 6) === 4 && i + 1 < count;
      const address = BigInt((low & ~15) >>> 0) | (wide ? BigInt(r32(offset + 4)) << 32n : 0n);
      out.push({ offset, size: wide ? 8 : 4, name, value: `Memory at ${hex(address, wide ? 16 : 8)} (${wide ? 64 : 32}-bit, ${low & 8 ? "" : "non-"}prefetchable)` });
      if (wide) i++;
    }
  }
  return out;
}

const window = (base: bigint, limit: bigint, rest: bigint): string => (limit < base ? "[disabled]" : `${hex(base, 8)}-${hex(limit | rest, 8)}`);

function capabilities(read: Readers): Block[] {
  const { r8, r16 } = read;
  const blocks: Block[] = [];
  const seen = new Set<number>();
  for (let at = r16(6) & 0x10 ? r8(0x34) & 0xfc : 0; at >= 0x40 && !seen.has(at); at = r8(at + 1) & 0xfc) {
    seen.add(at);
    const id = r8(at);
    blocks.push({ offset: at, name: CAPABILITIES[id] ?? `Capability ${hex(id, 2)}`, registers: DECODED[id]?.(at, read) ?? [] });
  }
  return blocks;
}

const power = (at: number, { r16 }: Readers): Register[] => [
  { offset: at + 4, size: 2, name: "Status", value: `D${r16(at + 4) & 3} ${flags(r16(at + 4) >>> 8, "PME-Enable _ _ _ _ _ _ PME")}` },
];

function msi(at: number, { r16, r32 }: Readers): Register[] {
  const control = r16(at + 2);
  const [wide, masks] = [control & 0x80, control & 0x100];
  const data = at + (wide ? 12 : 8);
  const address = BigInt(r32(at + 4)) | (wide ? BigInt(r32(at + 8)) << 32n : 0n);
  return [
    { offset: at + 2, size: 2, name: "Control", value: `${flags(control, "Enable")} Count=${1 << ((control >>> 4) & 7)}/${1 << ((control >>> 1) & 7)} ${flags(control >>> 7, "64bit Maskable")}` },
    { offset: at + 4, size: wide ? 8 : 4, name: "Address", value: hex(address, wide ? 16 : 8) },
    { offset: data, size: 2, name: "Data", value: hex(r16(data), 4) },
    ...(masks ? [{ offset: data + 4, size: 4, name: "Mask", value: hex(r32(data + 4), 8) }, { offset: data + 8, size: 4, name: "Pending", value: hex(r32(data + 8), 8) }] : []),
  ];
}

function msix(at: number, { r16, r32 }: Readers): Register[] {
  const control = r16(at + 2);
  const place = (offset: number) => `BAR=${r32(offset) & 7} offset=${hex((r32(offset) & ~7) >>> 0, 8)}`;
  return [
    { offset: at + 2, size: 2, name: "Control", value: `${flags(control >>> 15, "Enable")} Count=${(control & 0x7ff) + 1} ${flags(control >>> 14, "Masked")}` },
    { offset: at + 4, size: 4, name: "Vector table", value: place(at + 4) },
    { offset: at + 8, size: 4, name: "PBA", value: place(at + 8) },
  ];
}

function express(at: number, { r16, r32 }: Readers): Register[] {
  const kind = r16(at + 2);
  const [port, slot] = [(kind >>> 4) & 15, kind & 0x100];
  const below = port === 4 || port === 6;
  const control = r16(at + 8);
  const link = r16(at + 0x12);
  return [
    { offset: at + 2, size: 2, name: "Capabilities", value: `v${kind & 15} ${PORTS[port] ?? `type ${port}`}${slot ? " (Slot+)" : ""}` },
    { offset: at + 4, size: 4, name: "DevCap", value: `MaxPayload ${size(r32(at + 4))} ${flags(r32(at + 4) >>> 5, "ExtTag")} ${flags(r32(at + 4) >>> 28, "FLReset")}` },
    { offset: at + 8, size: 2, name: "DevCtl", value: `${flags(control, port === 7 ? DEVICE_CONTROL.replace("FLReset", "BrConfRtry") : DEVICE_CONTROL)} MaxPayload ${size(control >>> 5)} MaxReadReq ${size(control >>> 12)}` },
    { offset: at + 10, size: 2, name: "DevSta", value: flags(r16(at + 10), DEVICE_STATUS) },
    { offset: at + 12, size: 4, name: "LnkCap", value: `Port #${r32(at + 12) >>> 24} ${speed(r32(at + 12))}` },
    { offset: at + 16, size: 2, name: "LnkCtl", value: `RCB ${r16(at + 16) & 8 ? 128 : 64} B ${flags(r16(at + 16) >>> 4, "Disabled Retrain CommClk ExtSynch")}` },
    { offset: at + 18, size: 2, name: "LnkSta", value: `${speed(link)}${below ? ` ${flags(link >>> 11, "Train _ DLActive BWMgmt ABWMgmt")}` : ""}` },
    ...(slot ? [{ offset: at + 24, size: 2, name: "SltCtl", value: flags(r16(at + 24), SLOT_CONTROL) }, { offset: at + 26, size: 2, name: "SltSta", value: flags(r16(at + 26), SLOT_STATUS) }] : []),
    ...(port === 4 ? [
      { offset: at + 28, size: 2, name: "RootCtl", value: flags(r16(at + 28), ROOT_CONTROL) },
      { offset: at + 32, size: 4, name: "RootSta", value: `PME ReqID ${bdf(r16(at + 32))} ${flags(r16(at + 34), "PMEStatus PMEPending")}` },
    ] : []),
    ...((kind & 15) > 1 ? [{ offset: at + 40, size: 2, name: "DevCtl2", value: flags(r16(at + 40), "_ _ _ _ TimeoutDis ARIFwd AtomicOpsReq EgressBlck IDOReq IDOCompl LTR _ 10BitTagReq") }] : []),
  ];
}

function extended(read: Readers): Block[] {
  const { r32 } = read;
  const blocks: Block[] = [];
  const seen = new Set<number>();
  for (let at = 0x100; at >= 0x100 && !seen.has(at); at = (r32(at) >>> 20) & 0xffc) {
    seen.add(at);
    const id = r32(at) & 0xffff;
    if (r32(at) === 0 || r32(at) === 0xffffffff) break;
    const name = EXTENDED[id] ?? `Extended capability ${hex(id, 4)}`;
    blocks.push({ offset: at, name, registers: DECODED_EXTENDED[id]?.(at, read) ?? [] });
  }
  return blocks;
}

function errors(at: number, read: Readers): Register[] {
  const { r16, r32 } = read;
  const log = [0, 4, 8, 12].map((i) => hex(r32(at + 0x1c + i), 8)).join(" ");
  return [
    { offset: at + 4, size: 4, name: "UESta", value: flags(r32(at + 4), UNCORRECTABLE) },
    { offset: at + 8, size: 4, name: "UEMsk", value: flags(r32(at + 8), UNCORRECTABLE) },
    { offset: at + 12, size: 4, name: "UESvrt", value: flags(r32(at + 12), UNCORRECTABLE) },
    { offset: at + 16, size: 4, name: "CESta", value: flags(r32(at + 16), CORRECTABLE) },
    { offset: at + 20, size: 4, name: "CEMsk", value: flags(r32(at + 20), CORRECTABLE) },
    { offset: at + 24, size: 4, name: "AERCap", value: `First Error Pointer: ${hex(r32(at + 24) & 31, 2)}, ${flags(r32(at + 24) >>> 5, "ECRCGenCap ECRCGenEn ECRCChkCap ECRCChkEn")}` },
    { offset: at + 28, size: 16, name: "HeaderLog", value: log },
    ...(isRootPort(read) ? [
      { offset: at + 44, size: 4, name: "RootCmd", value: flags(r32(at + 44), ROOT_COMMAND) },
      { offset: at + 48, size: 4, name: "RootSta", value: flags(r32(at + 48), ROOT_ERRORS) },
      { offset: at + 52, size: 4, name: "ErrorSrc", value: `ERR_COR: ${bdf(r16(at + 52))} ERR_FATAL/NONFATAL: ${bdf(r16(at + 54))}` },
    ] : []),
  ];
}

function isRootPort({ r8, r16 }: Readers): boolean {
  const seen = new Set<number>();
  for (let at = r16(6) & 0x10 ? r8(0x34) & 0xfc : 0; at >= 0x40 && !seen.has(at); at = r8(at + 1) & 0xfc) {
    seen.add(at);
    if (r8(at) === 16) return ((r16(at + 2) >>> 4) & 15) === 4;
  }
  return false;
}

const access = (at: number, { r16 }: Readers): Register[] => [
  { offset: at + 4, size: 2, name: "ACSCap", value: flags(r16(at + 4), ACS) },
  { offset: at + 6, size: 2, name: "ACSCtl", value: flags(r16(at + 6), ACS) },
];

const translation = (at: number, { r16 }: Readers): Register[] => [
  { offset: at + 6, size: 2, name: "ATSCtl", value: `${flags(r16(at + 6) >>> 15, "Enable")} Smallest Translation Unit: ${hex(r16(at + 6) & 31, 2)}` },
];

const virtual = (at: number, { r16 }: Readers): Register[] => [
  { offset: at + 8, size: 2, name: "IOVCtl", value: flags(r16(at + 8), "Enable Migration Interrupt MSE ARIHierarchy") },
  { offset: at + 16, size: 2, name: "Number of VFs", value: String(r16(at + 16)) },
];

type Decoder = (at: number, read: Readers) => Register[];
const DECODED: Record<number, Decoder> = { 1: power, 5: msi, 16: express, 17: msix };
const DECODED_EXTENDED: Record<number, Decoder> = { 1: errors, 13: access, 15: translation, 16: virtual };

/** The register that a byte belongs to: `Status`, `Advanced Error Reporting: UESta`; null where none is decoded. */
export function registerAt(blocks: readonly Block[], offset: number): string | null {
  for (const block of blocks) {
    const found = block.registers.find((r) => offset >= r.offset && offset < r.offset + r.size);
    if (found) return block.offset === 0 ? found.name : `${block.name}: ${found.name}`;
  }
  return null;
}
