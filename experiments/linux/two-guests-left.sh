# Asks the right machine for answers, then sends to it.
set -e
ip addr add 10.0.0.1/24 dev eth0
ip link set eth0 up
for try in 1 2 3 4 5 6 7 8 9 10; do
  ping -c 1 -W 1 10.0.0.2 >/dev/null && break
done
ping -c 3 10.0.0.2
iperf3 -c 10.0.0.2 -n 4M
iperf3 -c 10.0.0.2 -u -b 400M -n 2M
ethtool -S eth0 | grep -E '(rx|tx)_(packets|bytes|errors):'
