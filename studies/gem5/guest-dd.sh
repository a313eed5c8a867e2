# Reads one block of the disk past the page cache, in transfers of 4 KiB; dd says what it measured.
set -e
block=${block:-64M} errors=${errors:-no}
# Without credits links report replays as errors; Linux reads registers for each report. The paper's functions report nothing, so these do not either.
if [ "$errors" = no ]; then
    for function in /sys/bus/pci/devices/*; do
        setpci -s "${function##*/}" CAP_EXP+8.w=0:f 2>/dev/null || true # the host bridge has no such register
    done
fi
# Less than the controller can tell of itself.
echo 4 >/sys/block/nvme0n1/queue/max_sectors_kb
# Not the shell's own dd, which does not tell the rate.
/usr/bin/dd if=/dev/nvme0n1 of=/dev/null bs="$block" count=1 iflag=direct
