# Reads the drive past the page cache: in one block, which the link's rate limits, and page by page, which waits for each.
set -e
# Not the shell's own dd, which does not tell the rate.
/usr/bin/dd if=/dev/nvme0n1 of=/dev/null bs=16M count=1 iflag=direct
/usr/bin/dd if=/dev/nvme0n1 of=/dev/null bs=4k count=256 iflag=direct
