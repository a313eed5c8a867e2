# The driver's own test of registers, NVM, interrupts and loop-back; then broadcast frames, each of which the plug leads back.
set -e
carrier() {
  for try in 1 2 3 4 5 6 7 8 9 10; do
    [ "$(cat /sys/class/net/eth0/carrier)" = 1 ] && return 0
    sleep 1
  done
  echo "no carrier"
  return 1
}
count() {
  cat "/sys/class/net/eth0/statistics/$1_packets"
}
ip addr add 10.0.0.1/24 dev eth0
ip link set eth0 up
carrier
ethtool -t eth0 offline
carrier
sent=$(count tx)
came=$(count rx)
ping -c 3 -W 1 10.0.0.2 >/dev/null || true # nobody is there: each second asks for the address
echo "sent $(($(count tx) - sent)) frames, $(($(count rx) - came)) came back"
[ "$(count tx)" -gt "$sent" ]
[ $(($(count tx) - sent)) = $(($(count rx) - came)) ]
ethtool -S eth0 | grep -v ': 0$'
ip link set eth0 down
