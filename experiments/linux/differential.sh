# Reads of configuration registers by a program and by the kernel, then of mapped registers by the kernel; idle, and beside a drive at work.
set -e
kernel() {
  insmod /lib/modules-tlplab/mmio_latency.ko count=500 "$@"
  rmmod mmio_latency
}

echo "idle"
config-latency -n 400 -g 5000
for function in 0000:00:01.0 0000:01:00.0 0000:03:00.0 0000:05:00.0; do
  kernel config=1 device=$function
done
for function in 0000:03:00.0 0000:05:00.0; do
  kernel device=$function
done

echo "beside dd"
while :; do dd if=/dev/nvme0n1 of=/dev/null bs=256k count=64 iflag=direct 2>/dev/null; done &
load=$!
config-latency -n 400 -g 5000
kill $load
