# What Linux sees of the device, before any driver; then a page that goes through it.
set -e
lspci -vv -s 01:00.0
echo "control of MSI-X: $(setpci -s 01:00.0 CAP_MSIX+2.w)"

insmod /lib/modules-tlplab/copier.ko
head -c 4096 /dev/urandom >/tmp/data
dd if=/tmp/data of=/dev/copier bs=4096
dd if=/dev/copier of=/tmp/copy bs=4096
cmp /tmp/data /tmp/copy
grep copier /proc/interrupts
rmmod copier
echo "a page went through the device"
