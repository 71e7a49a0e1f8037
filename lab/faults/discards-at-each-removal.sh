# what: a file system is mounted with discard, and a program creates and removes files all the time
# finding: io.discards
# also: io.sync_waits io.journal io.flushes calls.sync host.pressure_io
# needs: losetup mkfs.ext4 python3
# experts: iostat -x (d/s, d_await), /proc/mounts
# see: discards that take as long as the writes, and the option discard
. "$(dirname "$0")/words.sh"

slow_disk 200 0.2 --discard 8
mount_options=discard
file_system ledger
start $(program files create-and-remove "$mounted" --name spool --size 400000 --rate 20)
until_true 15 grows 1 5 disk_field "$device" 12
# In milliseconds: a twentieth of the time and more.
until_true 15 grows 2 200 disk_field "$device" 15
ready
