# The second NIC is in a network of its own, so that what the first sends to it goes over the cable.
set -e
modprobe e1000e
unshare -n sh -c 'until ip link show eth1 >/dev/null 2>&1; do sleep 0.1; done
  ip addr add 10.0.0.2/24 dev eth1
  ip link set eth1 up
  iperf3 -s -1 >/tmp/server' &
peer=$!
# It has its network before the NIC comes.
until [ "$(readlink /proc/$peer/ns/net)" != "$(readlink /proc/$$/ns/net)" ]; do sleep 0.1; done
ip link set eth1 netns $peer
ip addr add 10.0.0.1/24 dev eth0
ip link set eth0 up
until [ "$(cat /sys/class/net/eth0/carrier)" = 1 ]; do sleep 0.1; done
until ping -c 1 -W 1 10.0.0.2 >/tmp/first; do sleep 0.1; done
ping -c 3 -i 0.2 10.0.0.2
iperf3 -c 10.0.0.2 -n 2M
wait $peer
ethtool -S eth0 | grep -E ' (rx|tx)_packets| (rx|tx)_errors'
grep eth0 /proc/interrupts
