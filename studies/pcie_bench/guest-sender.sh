# Sends datagrams of 196 bytes, $packets of them, as fast as half a gigabit per second: frames of 238 bytes, and 242 with their check sequence.
set -e
ip addr add 10.0.0.1/24 dev eth0
ip link set eth0 up
for try in 1 2 3 4 5 6 7 8 9 10; do
  ping -c 1 -W 1 10.0.0.2 >/dev/null && break
done
iperf3 -c 10.0.0.2 -u -l 196 -b 500M -n $((196 * packets))
