# what: a control group has limits of its disk and its processor, and its program stays below them
# finding: none
# needs: losetup python3
# experts: blkio.throttle.* and cpu.stat of every group
# see: that nr_throttled does not grow, and that the program reads as much as it asks for
. "$(dirname "$0")/words.sh"

disk 64 --direct-io=on
dd if=/dev/zero of="$loop" bs=1M count=64 oflag=direct 2>/dev/null
group blkio batch
disk_group=$group
limit "$disk_group" blkio.throttle.read_bps_device "$(cat "/sys/block/$device/dev") 52428800"
group cpu batch
limit "$group" cpu.cfs_quota_us 50000
start_in "$group,$disk_group" $(program files read-direct "$loop" --name reads --direct \
    --size 65536 --rate 40)
throttled() {
    awk '$1 == "nr_throttled" { print $2 }' "$group/cpu.stat"
}
until_true 10 grows 1 3000 disk_field "$device" 3
! grows 1 1 throttled || fail 'the quota is used up'
ready
