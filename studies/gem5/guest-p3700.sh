# Reads one block of the disk past the page cache, as Linux cuts it; dd says what it measured.
/usr/bin/dd if=/dev/nvme0n1 of=/dev/null bs="${block:-64M}" count=1 iflag=direct
