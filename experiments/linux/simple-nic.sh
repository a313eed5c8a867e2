# Two networks on one NIC, by macvlan, which leaves it to what is outside to lead frames from one to the other: here a loop-back plug.
set -e
same() {
  [ "$1" = "$2" ] || { echo "$3: $1, not $2"; exit 1; }
}
count() {
  cat "/sys/class/net/eth0/statistics/$1"
}

dmesg -c >/dev/null
insmod /lib/modules-tlplab/simple_nic.ko
ip link set eth0 up
for side in left right; do ip link add link eth0 name $side type macvlan; done
unshare -n sh -c 'until ip link show right >/dev/null 2>&1; do sleep 0.1; done
  ip addr add 10.0.0.2/24 dev right
  ip link set right up
  for run in 1 2; do iperf3 -s -1 >/tmp/server; done' &
peer=$!
until [ "$(readlink /proc/$peer/ns/net)" != "$(readlink /proc/$$/ns/net)" ]; do sleep 0.1; done
ip link set right netns $peer
ip addr add 10.0.0.1/24 dev left
ip link set left up
until ping -c 1 -W 1 10.0.0.2 >/tmp/first; do sleep 0.1; done
ping -c 3 -i 0.2 10.0.0.2
ping -c 3 -i 0.2 -s 1472 10.0.0.2 | tail -2
iperf3 -c 10.0.0.2 -n 2M

# What ethtool changes, and the interface put to rest and taken up under it.
ethtool -G eth0 rx 64 tx 32
ethtool -C eth0 rx-usecs 20
ethtool -g eth0 | tail -5
if ethtool -G eth0 rx 100 2>/dev/null; then echo "a ring of 100"; exit 1; fi
until ping -c 1 -W 1 10.0.0.2 >/tmp/first; do sleep 0.1; done
iperf3 -c 10.0.0.2 -n 2M | grep receiver
wait $peer
ip link set left mtu 1000
ip link set eth0 mtu 1000
if ip link set eth0 mtu 9000 2>/dev/null; then echo "an MTU of 9000"; exit 1; fi

# What was sent has come back, and no frame had an error.
sleep 0.5
same "$(count rx_packets)" "$(count tx_packets)" "frames received"
same "$(count rx_bytes)" "$(count tx_bytes)" "bytes received"
for counter in rx_errors rx_dropped tx_errors tx_dropped; do same "$(count $counter)" 0 $counter; done
ethtool -S eth0

# Function-level resets, unbinding and unloading with the interface up.
place=$(readlink -f /sys/class/net/eth0/device)
[ ! -e "$place/reset" ] || echo 1 >"$place/reset"
ip addr add 10.0.1.1/24 dev eth0
sent=$(count tx_packets) came=$(count rx_packets)
ping -c 2 -W 1 10.0.1.2 >/dev/null || true # nobody is there: each second asks for the address
sleep 0.5
same $(($(count rx_packets) - came)) $(($(count tx_packets) - sent)) "frames received after the reset"
[ "$(count tx_packets)" -gt "$sent" ]
function=$(basename "$place")
echo "$function" >/sys/bus/pci/drivers/simple_nic/unbind
echo "$function" >/sys/bus/pci/drivers/simple_nic/bind
ip link set eth0 up
rmmod simple_nic

# Lines begin with their level; 4 is a warning. That the module is none of the kernel's own is no news, and the MTU was too large on purpose.
if dmesg -r | grep '^<[0-4]>' | grep -v -e 'out-of-tree module taints' -e 'mtu greater than device maximum'; then
  echo "the kernel warned"
  exit 1
fi
echo "the kernel has nothing to complain about"
