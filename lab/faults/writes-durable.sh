# what: a program appends to a file that it opened with O_SYNC, and calls no fsync
# finding: io.sync_waits
# names: appends
# names: O_SYNC
# also: io.flushes io.journal host.pressure_io
# needs: losetup mkfs.ext4 python3
# experts: /proc/PID/fdinfo (flags), iostat -x (f/s, f_await), ext4slower
# see: O_SYNC among the flags of the file, and a flush for each write
. "$(dirname "$0")/words.sh"

slow_disk 200 0.3 --flush 4
file_system ledger
start $(program files append "$mounted/log" --name appends --durable)
until_true 10 grows 1 20 disk_field "$device" 16
ready
