"""Devices and drivers in Python, on the smallest fabric there is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from carrier import STEP, Carrier

import tlplab as tl


class Copier(tl.Device):
    ids, msix = tl.Ids(0x71AB, 1), 1

    class regs(tl.Bar, size="4KiB"):
        src = tl.Reg64(0x00)
        dst = tl.Reg64(0x08)
        go = tl.Reg32(0x10)
        done = tl.Reg32(0x14, ro=True)

    @regs.go.on_write
    async def copy(self, cx: tl.Context, n: int) -> None:
        await cx.dma_write(self.regs.dst, await cx.dma_read(self.regs.src, n))
        self.regs.done += 1
        cx.msix(0)


def carry(device: tl.Device, driver: Any) -> Carrier:
    carrier = Carrier(device, driver)
    carrier.run()
    return carrier


def test_the_copier_copies() -> None:
    async def driver(host: tl.Host, dev: Any) -> None:
        a, b = host.alloc(b"x" * 4096), host.alloc(4096)
        await dev.regs.write(src=a, dst=b, go=4096)
        await dev.irq(0)
        assert host.read(b, 4096) == b"x" * 4096
        assert await dev.regs.read("done") == 1

    assert carry(Copier(), driver).finished


def test_a_failed_assertion_of_a_driver_is_not_swallowed() -> None:
    async def driver(_: tl.Host, dev: Any) -> None:
        await dev.regs.write(go=4)
        raise AssertionError("as it should")

    with pytest.raises(AssertionError, match="as it should"):
        carry(Copier(), driver)


def test_handlers_overlap_and_start_in_order() -> None:
    began: list[tuple[int, int]] = []

    class Slow(tl.Device):
        msix = 1

        class regs(tl.Bar, size=4096):
            go = tl.Reg32(0)

        @regs.go.on_write
        async def wait(self, cx: tl.Context, n: int) -> None:
            began.append((n, cx.now_fs))
            await cx.sleep("10us")
            cx.msix(0)

    async def driver(host: tl.Host, dev: Any) -> None:
        dev.regs.write(go=1)
        dev.regs.write(go=2)
        await dev.irq(0)
        await dev.irq(0)
        assert host.now_fs == 12 * STEP, "both waited at the same time"

    assert carry(Slow(), driver).finished
    assert began == [(1, STEP), (2, STEP)]


def test_operations_begin_when_called_not_when_awaited() -> None:
    class Reader(tl.Device):
        msix = 1

        class regs(tl.Bar, size=4096):
            go = tl.Reg32(0)

        @regs.go.on_write
        async def read(self, cx: tl.Context, _: int) -> None:
            first, second = cx.dma_read(0, 4), cx.dma_read(4, 4)
            assert await second + await first == b"\0" * 8
            assert cx.now_fs == 2 * STEP
            cx.msix(0)

    async def driver(_: tl.Host, dev: Any) -> None:
        await dev.regs.write(go=1)
        await dev.irq(0)

    assert carry(Reader(), driver).finished


def test_a_read_that_fails_raises_where_it_is_awaited() -> None:
    class Lost(tl.Device):
        msix = 1
        heard = ""

        class regs(tl.Bar, size=4096):
            go = tl.Reg32(0)

        @regs.go.on_write
        async def read(self, cx: tl.Context, _: int) -> None:
            try:
                await cx.dma_read(0xBAD, 4)
            except tl.DmaError as error:
                self.heard = str(error)
            cx.msix(0)

    async def driver(_: tl.Host, dev: Any) -> None:
        await dev.regs.write(go=1)
        await dev.irq(0)

    device = Lost()
    assert carry(device, driver).finished
    assert device.heard == "unsupported request"


def test_memory_and_registers_byte_by_byte() -> None:
    class Board(tl.Device):
        class mem(tl.Bar, size="64KiB", memory=True):
            pass

        class regs(tl.Bar, size="4KiB"):
            a = tl.Reg32(0, reset=0x1234_5678)
            b = tl.Reg32(4, ro=True, reset=7)
            clock = tl.Reg64(8)

        @regs.clock.on_read
        def now(self, cx: tl.Context) -> int:
            return cx.now_fs

    async def driver(host: tl.Host, dev: Any) -> None:
        await dev.mem.poke(0xFFFC, b"last")
        assert await dev.mem.peek(0xFFFA, 6) == b"\0\0last"
        assert await dev.regs.read("a") == 0x1234_5678
        await dev.regs.poke(1, b"\xaa")
        assert await dev.regs.read("a") == 0x1234_AA78
        await dev.regs.poke(2, b"\x01\x02\x03\x04")
        assert await dev.regs.peek(0, 8) == b"\x78\xaa\x01\x02\x07\0\0\0", "b is read-only"
        begun = host.now_fs
        assert await dev.regs.read("clock") == begun + STEP
        with pytest.raises(ValueError, match="outside the BAR"):
            dev.mem.peek(0xFFFE, 4)
        with pytest.raises(AttributeError, match="the registers are a, b, clock"):
            dev.regs.write(c=1)

    carrier = Carrier(Board(), driver)
    assert carrier.device.identity()["bars"] == [(0, 65536, True, True, False), (2, 4096, False, False, False)]
    carrier.run()
    assert carrier.finished


def test_a_reset_cancels_waiting_handlers() -> None:
    ended: list[str] = []

    class Sleeper(tl.Device):
        class regs(tl.Bar, size=4096):
            go = tl.Reg32(0, reset=5)

        @regs.go.on_write
        async def wait(self, cx: tl.Context, _: int) -> None:
            try:
                await cx.sleep("1ms")
                ended.append("slept")
            finally:
                ended.append("cancelled")

        def reset(self) -> None:
            ended.append(f"reset {self.regs.go}")

    async def driver(_: tl.Host, dev: Any) -> None:
        await dev.regs.write(go=1)

    carrier = Carrier(Sleeper(), driver)
    carrier.at(5 * STEP, "device", "reset")
    carrier.run()
    assert ended == ["cancelled", "reset 5"]


def test_interrupts_before_a_wait_are_kept() -> None:
    async def driver(host: tl.Host, dev: Any) -> None:
        await dev.regs.write(go=4)
        await dev.regs.write(go=4)
        await host.sleep("1ms")
        await dev.irq(0)
        await dev.irq(0)

    assert carry(Copier(), driver).finished


def test_devices_do_not_share_registers() -> None:
    one, two = Copier(), Copier()
    one.regs.src = 1
    assert (one.regs.src, two.regs.src) == (1, 0)


def test_mistakes_in_a_class_are_named() -> None:
    with pytest.raises(ValueError, match=r"Overlapping: line \d+: b at 0x4 overlaps a"):

        class Overlapping(tl.Bar, size=4096):
            a = tl.Reg64(0)
            b = tl.Reg32(4)

    for taken in ("size", "values", "read"):
        with pytest.raises(
            ValueError, match=rf"line \d+: a register cannot have the name {taken}, .*; name it {taken}_reg"
        ):
            type("Taken", (tl.Bar,), {taken: tl.Reg32(0)}, size=16)

    with pytest.raises(ValueError, match="outside the BAR of 0x10 B"):

        class Outside(tl.Bar, size=16):
            a = tl.Reg32(16)

    with pytest.raises(ValueError, match="power of two"):

        class Odd(tl.Bar, size=100):
            pass

    with pytest.raises(
        ValueError, match=r"Apart: line \d+: a at 0x4 is not aligned; put a register of 8 B at a multiple of 8"
    ):

        class Apart(tl.Bar, size=16):
            a = tl.Reg64(4)

    with pytest.raises(OverflowError, match="does not fit"):
        Copier().regs.go = 1 << 32
    with pytest.raises(ValueError, match="no MSI-X vector 1: it has 1, from 0 to 0; for more, msix = 2"):
        Carrier(Copier(), None).device.context.msix(1)


def test_bars_without_a_size_or_with_unknown_keywords_are_refused() -> None:
    with pytest.raises(TypeError, match=r'^regs: the size of the BAR is missing; .*class regs\(tl.Bar, size="4KiB"\)$'):
        type("regs", (tl.Bar,), {})
    with pytest.raises(TypeError, match=r'^regs: unknown keyword "sise"; did you mean "size"\?$'):
        type("regs", (tl.Bar,), {}, sise="4KiB")
    with pytest.raises(TypeError, match=r'^regs: unknown keyword "x"; expected size, memory, wide'):
        type("regs", (tl.Bar,), {}, size="4KiB", x=1)


def test_awaiting_something_foreign_is_explained() -> None:
    class Foreign(tl.Device):
        class regs(tl.Bar, size=4096):
            go = tl.Reg32(0)

        @regs.go.on_write
        async def wait(self, _cx: tl.Context, _: int) -> None:
            import asyncio

            await asyncio.sleep(1)

    async def driver(_: tl.Host, dev: Any) -> None:
        await dev.regs.write(go=1)

    with pytest.raises((TypeError, RuntimeError), match="event loop"):
        carry(Foreign(), driver)


def bar(name: str, **options: Any) -> type[tl.Bar]:
    return type(name, (tl.Bar,), {}, **{"size": 4096, **options})


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (
            {"a": bar("a", memory=True), "b": bar("b", number=1)},
            "BAR 1 is used twice; a 64-bit BAR also takes the next",
        ),
        ({"a": bar("a", number=6)}, "BAR 6 does not exist"),
        ({"a": bar("a", memory=True, number=5)}, "BAR 5 does not exist"),
        ({"a": bar("a", io=True)}, "BAR 0 has 4096 B; .* 4 to 256 in I/O space"),
        ({"msix": 1, **{n: bar(n, memory=True) for n in "abc"}}, "the MSI-X table needs a BAR of its own"),
        ({"msix": 3000}, "3000 MSI-X vectors; a table holds at most 2048"),
        ({"msix": 70_000}, "msix is 0x11170; it has 16 bits"),
        ({"msix": "1"}, "msix is '1'; it must be an integer"),
        ({"msi": 3}, "3 MSI vectors; expected 0, 1, 2"),
        ({"ids": tl.Ids(0x1_0000, 1)}, "ids.vendor is 0x10000; it has 16 bits"),
        ({"ids": 0x8086}, r"ids is 32902; it must be Ids\(vendor, device"),
        ({"capabilities": tl.Ltr()}, "it must be a tuple"),
        ({"capabilities": ("LTR",)}, "'LTR' is not a capability; the capabilities are Vendor, VendorExtended"),
        (
            {"capabilities": (tl.Vendor(b"x" * 20, at=0x80), tl.Vendor(b"y", at=0x90))},
            "vendor specific at 0x90 overlaps vendor specific from 0x80 to 0x98; give each its own bytes",
        ),
        (
            {"capabilities": (tl.Ltr(at=0x40),)},
            "does not fit at 0x40; expected a multiple of 4 .* or from 0x100 for an extended",
        ),
        ({"capabilities": (tl.Ats(queue_depth=40),)}, "ATS: queue depth is 0x28; it must be 1 to 32"),
        ({"capabilities": (tl.Vendor("text"),)}, "Vendor: data is 'text'; it must be bytes"),  # type: ignore[arg-type]
        ({"capabilities": (tl.ResizableBar({"a": ("1MiB",)}),)}, "there is no BAR 'a'; the BARs are none"),
        (
            {"a": bar("a"), "capabilities": (tl.ResizableBar({"a": ("1MiB",)}),)},
            "ResizableBar: 4096 B is invalid; sizes are powers of two from 1 MiB to 128 TiB",
        ),
    ],
)
def test_a_device_that_cannot_be_is_refused_where_it_is_written(parts: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"Board: .*{message}"):
        type("Board", (tl.Device,), parts)


def test_forbidden_calls_of_a_handler_are_refused() -> None:
    class Plain(tl.Device):
        pass

    class Old(tl.Device):
        msi = 4

    cx = Carrier(Plain(), None).device.context
    with pytest.raises(ValueError, match="no MSI-X vector 0: it has none; for more, msix = 1"):
        cx.msix(0)
    with pytest.raises(ValueError, match="no MSI vector 7: it has 4, from 0 to 3; for more, msi = 8"):
        Carrier(Old(), None).device.context.msix(7)
    with pytest.raises(ValueError, match="no interrupt pin; give it one: intx = True"):
        cx.intx(True)
    with pytest.raises(ValueError, match="address is -0x1; it has 64 bits"):
        cx.dma_read(-1, 4)
    with pytest.raises(TypeError, match="data is 'x'; it must be bytes"):
        cx.dma_write(0, "x")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="offset is 0x1000; it has 12 bits"):
        cx.set_config(0x1000, b"")
    with pytest.raises(TypeError, match="data is 255; it must be bytes"):
        cx.set_config(0, 255)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="Plain takes no parameters, but was given depth"):
        Plain(depth=4)


def test_software_sees_ids_interrupts_and_capabilities() -> None:
    class Board(tl.Device):
        ids = tl.Ids(0x71AB, 7, revision=3, class_code=0x12_00_00, subsystem=(0x1234, 0x5678))
        msix, msi, intx = 4, 2, True
        capabilities = (
            tl.Vendor(b"own", at=0x80),
            tl.SerialNumber(0x0123_4567_89AB_CDEF, at=0x100),
            tl.Pasid(width=16),
        )

        class ports(tl.Bar, size=32, io=True):
            pass

        class mem(tl.Bar, size="1MiB", memory=True, number=2):
            pass

    async def driver(_: tl.Host, dev: Any) -> None:
        assert await dev.config.read(0, 4) == b"\xab\x71\x07\x00"
        assert await dev.config.read(8, 4) == b"\x03\x00\x00\x12"
        assert await dev.config.read(0x2C, 4) == b"\x34\x12\x78\x56"
        assert (await dev.config.read(0x10, 1))[0] & 1, "I/O"
        assert (await dev.config.read(0x18, 1))[0] & 0xF == 0xC, "64-bit, prefetchable"
        assert (await dev.config.read(0x3D, 1)) == b"\x01", "INTA"
        assert await dev.config.read(0x80, 6) == b"\x09" + (await dev.config.read(0x81, 1)) + b"\x06own"
        assert await dev.config.read(0x100, 12) == b"\x03\x00" + (await dev.config.read(0x102, 2)) + bytes.fromhex(
            "efcdab8967452301"
        )

    tl.simulate(Board(), driver)


def test_reads_that_answer_later_or_not_at_all() -> None:
    class Board(tl.Device):
        class regs(tl.Bar, size=16):
            slow = tl.Reg32(0)
            absent = tl.Reg32(4)
            broken = tl.Reg32(8)

        @regs.slow.on_read
        async def wait(self, cx: tl.Context) -> int:
            await cx.sleep("5us")
            return 7

        @regs.absent.on_read
        def nothing(self, cx: tl.Context) -> int:
            raise tl.UnsupportedRequest

        @regs.broken.on_read
        def fail(self, cx: tl.Context) -> int:
            raise tl.CompleterAbort

    async def driver(host: tl.Host, dev: Any) -> None:
        begun = host.now_fs
        slow = dev.bar(0).peek(0, 4)
        with pytest.raises(tl.DmaError, match=r"\(UR\)"):
            await dev.regs.read("absent")
        with pytest.raises(tl.DmaError, match=r"\(CA\)"):
            await dev.regs.read("broken")
        assert host.now_fs - begun < 5_000_000_000, "others are answered meanwhile"
        assert await slow == b"\x07\0\0\0"
        assert host.now_fs - begun > 5_000_000_000

    tl.simulate(Board(), driver)


def test_a_failure_before_anything_else_happens_is_heard() -> None:
    class Board(tl.Device):
        async def start(self, cx: tl.Context) -> None:
            await cx.dma_read((1 << 64) - 2, 4)

    with pytest.raises(tl.RunError, match="pass the end of the address space"):
        tl.simulate(Board(), stop="10us")


class Chameleon(tl.Device):
    ids, msix = tl.Ids(0x71AB, 7), 2

    class regs(tl.Bar, size="4KiB"):
        where = tl.Reg32(0x00)
        what = tl.Reg32(0x04)

    @regs.what.on_write
    def change(self, cx: tl.Context, value: int) -> None:
        cx.set_config(self.regs.where, value.to_bytes(4, "little"))


def test_a_device_changes_its_configuration_space() -> None:
    seen: list[bytes] = []

    async def driver(_host: tl.Host, dev: Any) -> None:
        await dev.regs.write(where=0, what=0x10D3_8086)
        assert await dev.regs.read("what") == 0x10D3_8086  # it has arrived
        seen.append(await dev.config.read(0, 4))
        await dev.regs.write(where=0x100, what=0xFFFF_FFFF)
        await dev.regs.read("what")
        seen.append(await dev.config.read(0x100, 4))
        # It decodes as before.
        seen.append(await dev.config.read(4, 1))

    tl.simulate(Chameleon(), driver)
    assert seen == [b"\x86\x80\xd3\x10", b"\xff" * 4, b"\x06"]


@pytest.mark.parametrize(
    ("where", "says"), [(0x10, "the byte at 0x12"), (0xFFE, "4 bytes of its configuration space at 0xffe")]
)
def test_changing_a_register_of_software_ends_the_run(where: int, says: str) -> None:
    async def driver(_host: tl.Host, dev: Any) -> None:
        await dev.regs.write(where=where, what=0)
        await dev.regs.read("what")

    with pytest.raises(tl.RunError, match=says):
        tl.simulate(Chameleon(), driver)


def test_a_run_that_failed_can_be_looked_at(tmp_path: Path) -> None:
    """By a device that raises, and by a driver that waits for ever."""

    class Odd(tl.Device):
        ids, msix = tl.Ids(0x71AB, 1), 1

        def __init__(self, error: Exception | None) -> None:
            self.error = error

        class regs(tl.Bar, size="4KiB"):
            go = tl.Reg32(0x10)

        @regs.go.on_write
        async def start_it(self, cx: tl.Context, n: int) -> None:
            await cx.dma_read(0x10_0000, n)
            if self.error is not None:
                raise self.error

    async def driver(_host: tl.Host, dev: Any) -> None:
        await dev.regs.write(go=1)
        await dev.irq(0)

    for device, says, reason in (
        (Odd(ArithmeticError("broken")), "broken", "failed"),
        (Odd(None), "still waits", "stuck"),
    ):
        with pytest.raises(tl.RunError, match=says) as caught:
            tl.simulate(device, driver)
        run = caught.value.run
        assert run is not None
        assert run.result["stop_reason"] == reason
        assert sum(way["tlps"] for link in run.result["links"] for way in link["directions"]) >= 3
        run.report(tmp_path / "failed.html")
        assert (tmp_path / "failed.html").stat().st_size > 10_000
