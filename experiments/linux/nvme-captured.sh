# Writes and reads the drive, one command at a time: 32 blocks, 8 blocks, 4 blocks.
set -e
block=$(cat /sys/block/nvme0n1/queue/logical_block_size)
for blocks in 32 8 4; do
    nvme write /dev/nvme0n1 --block-count=$((blocks - 1)) --data-size=$((blocks * block)) --data=/dev/zero
    nvme read /dev/nvme0n1 --block-count=$((blocks - 1)) --data-size=$((blocks * block)) --data=/dev/null
done
