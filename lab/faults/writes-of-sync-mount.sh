# what: a file system is mounted with the option sync, and a program appends to a file
# finding: io.sync_waits
# names: appends
# names: mounted with the option sync
# also: io.flushes io.journal host.pressure_io
# needs: losetup mkfs.ext4 python3
# experts: /proc/mounts, iostat -x (f/s, f_await)
# see: the option sync, and a flush for each write
. "$(dirname "$0")/words.sh"

slow_disk 200 0.3 --flush 4
mount_options=sync
file_system ledger
start $(program files append "$mounted/log" --name appends)
until_true 10 grows 1 20 disk_field "$device" 16
ready
