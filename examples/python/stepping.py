"""Stops a run at the doorbell of a device, and looks at the device's actions."""

from copier import Copier, driver

import tlplab as tl

run = tl.debug(Copier(), driver, link="gen4 x4")
doorbell = run.next_tlp(touches="go")
print(f"rung at {doorbell.arrive_ns:.1f} ns: {doorbell.text}")
print(run.next_tlp(kind="MRd"))
print(f"{len(run.run_until('1us').where(kind='CplD'))} completions within a microsecond")
print(run.next_tlp(kind="MWr", receiver="host.rp0"))
print(run.finish().sentence)
