# what: a program appends 200 bytes to a log and calls fsync, again and again
# finding: io.sync_waits
# names: orders.log
# also: io.journal io.flushes host.pressure_io calls.sync
# needs: losetup mkfs.ext4 python3
# experts: strace -c -p, ext4slower, iostat -x (f/s, f_await)
# see: that nearly all its time is in fsync of one file
. "$(dirname "$0")/words.sh"

disk 128 --direct-io=on
file_system ledger
start $(program files append-and-sync "$mounted/orders.log" --name order-log --size 200 --rate 400)
writer=$pid
until_true 10 grows 1 20 disk_field "$device" 16
until_true 5 waits_in "$writer" 'jbd2\|blkdev_issue_flush\|folio_wait'
ready
