# what: the virtual disk of the machine has the scheduler bfq, meant for rotating disks
# finding: host.scheduler
# names: bfq
# needs: python3
# experts: /sys/block/*/queue/scheduler, systemd-detect-virt
# see: [bfq] on a disk whose host orders the requests again
. "$(dirname "$0")/words.sh"

for disk in /sys/block/vd* /sys/block/nvme*; do
    [ -e "$disk/queue/scheduler" ] && break
done
[ -e "$disk/queue/scheduler" ] || skip 'the machine has no virtual disk'
grep -q bfq "$disk/queue/scheduler" || skip 'the kernel has no bfq'
attribute "$disk/queue/scheduler" bfq
grep -q '\[bfq\]' "$disk/queue/scheduler" || fail 'the disk has not taken bfq'
ready
