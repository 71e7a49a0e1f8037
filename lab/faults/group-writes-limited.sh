# what: a control group may make 50 writes a second, and its program wants more
# finding: io.cgroup_limit
# names: batch-
# also: host.pressure_io
# needs: losetup python3
# experts: blkio.throttle.write_iops_device of every group, offcputime, iostat -x
# see: the limit, that the disk is idle while the program waits, and that both belong together
. "$(dirname "$0")/words.sh"

disk 64 --direct-io=on
group blkio batch
limit "$group" blkio.throttle.write_iops_device "$(cat "/sys/block/$device/dev") 50"
start_in "$group" $(program files write-direct "$loop" --name writes-in-group --direct)
until_true 10 grows 1 30 disk_field "$device" 5
! grows 2 200 disk_field "$device" 5 || fail 'the limit does not hold'
ready
