# Writes a megabyte of known data to the drive, past the page cache, and reads it back.
set -e
nvme list
[ -b /dev/nvme0n1 ]
head -c 1048576 /dev/urandom >/tmp/data
dd if=/tmp/data of=/dev/nvme0n1 bs=64k oflag=direct
dd if=/dev/nvme0n1 of=/tmp/back bs=64k count=16 iflag=direct
cmp /tmp/data /tmp/back
echo "1 MiB written and read back"
