# what: a file system is mounted without barriers: fsync does not flush the disk's cache
# finding: io.no_barriers
# names: ledger
# also: io.sync_waits io.journal
# needs: losetup mkfs.ext4 python3
# experts: /proc/mounts, iostat -x (f/s)
# see: the word nobarrier among the options, or no flush while programs call fsync
. "$(dirname "$0")/words.sh"

disk 128 --direct-io=on
mount_options=barrier=0
file_system ledger
grep " $mounted " /proc/mounts | grep -q nobarrier || fail 'there are barriers'
start $(program files append-and-sync "$mounted/orders.log" --name order-log --size 200 --rate 50)
until_true 10 grows 1 20 disk_field "$device" 5
ready
