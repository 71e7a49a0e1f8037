# what: a program overwrites one block of a disk and flushes its cache each time
# finding: io.flushes io.sync_waits
# names: journals
# also: host.pressure_io calls.sync
# needs: losetup python3
# experts: iostat -x (f/s, f_await), biosnoop, strace -c
# see: as many flushes as writes, and that they take most of the time
. "$(dirname "$0")/words.sh"

slow_disk 16 0.3 --flush 8
start $(program files overwrite-and-sync "$loop" --name journals --direct --rate 200)
until_true 10 grows 1 30 disk_field "$device" 16
ready
