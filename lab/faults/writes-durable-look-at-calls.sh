# what: a program appends to a file that it opened with O_SYNC; the look is at its calls
# finding: calls.slow_file
# names: O_SYNC
# look: calls --pid $PID
# needs: losetup mkfs.ext4 python3
# experts: strace -c -T -y -p, /proc/PID/fdinfo (flags)
# see: that all its time is in write of one file, whose flags have O_SYNC
. "$(dirname "$0")/words.sh"

slow_disk 200 0.3 --flush 4
file_system ledger
start $(program files append "$mounted/log" --name appends --durable)
until_true 10 grows 1 20 disk_field "$device" 16
ready "$pid"
