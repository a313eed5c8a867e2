# Receives what the sender sends.
set -e
ip addr add 10.0.0.2/24 dev eth0
ip link set eth0 up
iperf3 -s -1
