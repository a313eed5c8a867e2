# Times reads of the NIC's STATUS register by the kernel's clock.
set -e
insmod /lib/modules-tlplab/mmio_latency.ko device=0000:01:00.0 bar=0 offset=8 count=64
for figure in min median max; do
    echo "$figure $(cat /sys/kernel/debug/mmio_latency/${figure}_ns) ns"
done
