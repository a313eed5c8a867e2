# Changes rings and MTU of an interface that is up, reads the NVM, negotiates the link again, sleeps and wakes; then frames that the plug leads back.
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
ethtool -G eth0 rx 128 tx 128
ip link set eth0 mtu 9000
ethtool -e eth0 length 128 >/dev/null
ethtool -r eth0
carrier
echo +5 >/sys/class/rtc/rtc0/wakealarm
echo mem >/sys/power/state
carrier
sent=$(count tx)
came=$(count rx)
ping -c 2 -W 1 10.0.0.2 >/dev/null || true # nobody is there: each second asks for the address
echo "sent $(($(count tx) - sent)) frames, $(($(count rx) - came)) came back"
[ "$(count tx)" -gt "$sent" ]
[ $(($(count tx) - sent)) = $(($(count rx) - came)) ]
ip link set eth0 down
