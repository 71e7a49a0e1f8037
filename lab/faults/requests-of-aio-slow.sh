# what: a database reads by aio from a disk that takes 10 ms for each, and waits; the look is at its
#   calls
# finding: calls.slow_file
# names: ledger
# look: calls --pid $PID
# needs: losetup fio
# experts: strace -f -T -e io_submit,io_getevents -p, iostat -x (r_await), /proc/PID/fdinfo
# see: that all its time is in io_getevents, and which file io_submit named before
# short
. "$(dirname "$0")/words.sh"

slow_disk 100 10
file_system ledger
dd if=/dev/zero of="$mounted/accounts" bs=1M count=40 status=none && sync -f "$mounted" ||
    fail 'cannot write a file of 40 MB'
start fio --name=accounts --filename="$mounted/accounts" --rw=randread --bs=4k --iodepth=4 \
    --ioengine=libaio --direct=1 --thread --time_based --runtime=1d --output=/dev/null
until_true 10 grows 1 40 disk_field "$device" 1
ready "$pid"
