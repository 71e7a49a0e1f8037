#!/bin/busybox sh
# The guest's first process: file systems, modules, then the case named on the kernel's command
# line. Standard output goes to the console; what the host should know goes to the second line.
/bin/busybox --install -s /bin
export PATH=/bin HOME=/root
mount -t proc none /proc
mount -t sysfs none /sys
mount -t devtmpfs none /dev
mount -t tmpfs none /tmp
case=$(sed -n 's/.*lab\.case=\([^ ]*\).*/\1/p' /proc/cmdline)
while read -r module; do
    insmod "/lab/modules/$module.ko"
done <"/lab/cases/$case.modules"
# The second line is raw: no echo, no carriage returns.
stty -F /dev/ttyS1 raw -echo
# libdevmapper and mdadm would wait for udev.
export DM_DISABLE_UDEV=1 MDADM_NO_UDEV=1

if sh -eu -c '. /lab/guest.sh; . "$1"' sh "/lab/cases/$case.sh"; then
    echo pass >/dev/ttyS1
else
    echo "fail the script ended with status $?" >/dev/ttyS1
fi
sleep 1
poweroff -f
