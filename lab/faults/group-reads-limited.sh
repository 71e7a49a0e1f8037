# what: a control group may read 1 MB a second, and its program wants more
# short
# finding: io.cgroup_limit
# names: batch-
# also: host.pressure_io io.small_requests
# needs: losetup python3
# experts: blkio.throttle.read_bps_device of every group, offcputime, iostat -x
# see: the limit, that the disk is idle while the program waits, and that both belong together
. "$(dirname "$0")/words.sh"

disk 64 --direct-io=on
dd if=/dev/zero of="$loop" bs=1M count=64 oflag=direct 2>/dev/null
group blkio batch
limit "$group" blkio.throttle.read_bps_device "$(cat "/sys/block/$device/dev") 1048576"
start_in "$group" $(program files read-direct "$loop" --name reads-in-group --direct --size 65536)
# As much as the limit, and no more.
until_true 10 grows 1 1500 disk_field "$device" 3
! grows 2 6000 disk_field "$device" 3 || fail 'the limit does not hold'
ready
