# Loads the driver with MSI-X, with the legacy interrupt, and polling; each time the test program moves data to the card and back and looks at every
# byte. Then the driver has to keep its promises: tlpdma-device-test. Fails if the kernel warns of anything meanwhile.
set -e
load() {
  echo "insmod tlpdma.ko $*"
  insmod /lib/modules-tlplab/tlpdma.ko "$@"
  [ -c /dev/tlpdma0 ]
}

# On a terminal the test program would show its progress.
measure() {
  tlpdma-test --runs 2 --latency-runs 20 --offset 3 "$@" /dev/tlpdma0 2>/tmp/errors || { cat /tmp/errors; exit 1; }
  grep tlpdma /proc/interrupts
  rmmod tlpdma
}

dmesg -c >/dev/null
load msix=1
measure --sizes 4:1MiB
load msix=0
measure --sizes 4:1MiB
# Who polls in simulated time does so every nanosecond, which takes its time.
load poll_us=3
measure --sizes 4:64

load
tlpdma-device-test /dev/tlpdma0
# An ordinary guest under QEMU wakes, but cannot be switched off after it.
[ ! -e /sys/kernel/um-ext-time ] || tlpdma-device-test /dev/tlpdma0 sleep
rmmod tlpdma

# Lines begin with their level; 4 is a warning. That the module is none of the kernel's own is no news.
if dmesg -r | grep '^<[0-4]>' | grep -v 'out-of-tree module taints'; then
  echo "the kernel warned"
  exit 1
fi
echo "the driver was loaded and unloaded 4 times, and the kernel has nothing to complain about"
