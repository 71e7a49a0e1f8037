# what: a program appends 200 bytes to a log and calls fsync; the look is at its calls
# finding: calls.sync
# names: orders.log
# look: calls --pid $PID
# needs: losetup mkfs.ext4 python3
# experts: strace -c -T -y -p, perf trace -s
# see: that nearly all its time is in fsync of one file
. "$(dirname "$0")/words.sh"

disk 128 --direct-io=on
file_system ledger
start $(program files append-and-sync "$mounted/orders.log" --name order-log --size 200 --rate 400)
until_true 10 grows 1 20 disk_field "$device" 16
ready "$pid"
