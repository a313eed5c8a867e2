# Answers what the left machine asks, and serves two runs of iperf3.
set -e
ip addr add 10.0.0.2/24 dev eth0
ip link set eth0 up
iperf3 -s -1
iperf3 -s -1
ethtool -S eth0 | grep -E '(rx|tx)_(packets|bytes|errors):'
