"""Groups of figures that have one cause, with the model's expected error, and its reason."""

from __future__ import annotations

from dataclasses import dataclass

from tlplab.bench.case import Case

LINE = 128
# Relative: of what follows from the link, and of everything else.
BY_LINK, OTHERS = 0.02, 0.10

SPLIT = "the host answers a part of the requests in two completions of 64 B; the model's answers all as one"
PARTIAL = "a warp's part of a line leaves in more pieces than the model's"
LOADED = "the latency of the real machine grows long before the link is full"
FETCH = "a warp fetches each operation from the GPU's memory, 190 ns, which takes longer than its store; in the model nothing does"
CREDITS = (
    "the time to commit a write, fitted to a read behind a write, holds posted credits, too; the real one does not"
)
TURNS = "a warp's next write waits for its read; the model's engine has reads and writes under way apart"
WARP = "a warp sends its requests one after the other, and later than the model's"


@dataclass(frozen=True)
class Group:
    """Figures of a test with sizes, and numbers at once, from and to."""

    name: str
    test: str
    sizes: tuple[int, int]
    at_once: tuple[int, int] | None = None
    """None: as many as the GPU does."""
    off_lines: bool = False
    """Transfers that begin within a line of 128 B."""
    within: float = OTHERS
    why: str = ""

    def has(self, case: Case) -> bool:
        """True if a case belongs to the group."""
        first, last = self.at_once or (None, None)
        if case.test != self.test or not self.sizes[0] <= case.size <= self.sizes[1]:
            return False
        if (case.host_offset % LINE != 0) != self.off_lines:
            return False
        if case.at_once is None or first is None or last is None:
            return case.at_once is None and first is None
        return first <= case.at_once <= last


GROUPS = (
    Group("latency of reads, one request", "lat_rd", (4, LINE)),
    Group("latency of reads, several requests", "lat_rd", (LINE + 1, 2048), why=WARP),
    Group("latency of a write and a read behind it", "lat_wrrd", (4, 1024)),
    Group("writes of whole lines", "bw_wr", (LINE, 16384), within=BY_LINK),
    Group("writes of less than a line", "bw_wr", (4, LINE - 1), why=f"{CREDITS}; {PARTIAL}"),
    Group("writes off a line's boundary", "bw_wr", (LINE, LINE), off_lines=True, why=PARTIAL),
    Group("reads of whole lines", "bw_rd", (LINE, 16384), why=SPLIT),
    Group("reads of less than a line", "bw_rd", (4, LINE - 1), why=PARTIAL),
    Group("reads off a line's boundary", "bw_rd", (LINE, LINE), off_lines=True, why=PARTIAL),
    Group("reads, 1 to 128 at once", "bw_rd", (4, 512), (1, 128), why=LOADED),
    Group("reads, 129 to 1023 at once", "bw_rd", (4, 512), (129, 1023), why=LOADED),
    Group("reads, 1024 at once and more", "bw_rd", (4, 512), (1024, 4096), why=SPLIT),
    Group("writes, 1 to 64 at once", "bw_wr", (4, LINE), (1, 64), why=FETCH),
    Group("writes, 256 at once", "bw_wr", (4, LINE), (256, 256), why=CREDITS),
    Group("reads and writes in turn", "bw_rdwr", (4, 2048), why=f"{TURNS}; {SPLIT}"),
    Group("reads and writes in turn, 32 to 2048 at once", "bw_rdwr", (4, 2048), (32, 2048), why=TURNS),
)
