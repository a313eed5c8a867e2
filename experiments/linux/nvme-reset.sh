# Writes to the drive, resets its controller, has the driver look for namespaces again, and reads the data back.
set -e
[ -b /dev/nvme0n1 ]
head -c 65536 /dev/urandom >/tmp/data
dd if=/tmp/data of=/dev/nvme0n1 bs=64k oflag=direct
nvme reset /dev/nvme0
nvme ns-rescan /dev/nvme0
[ -b /dev/nvme0n1 ]
dd if=/dev/nvme0n1 of=/tmp/back bs=64k count=1 iflag=direct
cmp /tmp/data /tmp/back
echo "64 KiB written, and read back after a reset"
