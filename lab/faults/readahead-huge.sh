# what: readahead is 4 MiB, and a program reads the first 64 KiB of many files
# finding: io.readahead
# names: indexes
# needs: losetup mkfs.ext4 python3
# experts: blockdev --getra, iostat -x (rkB/s) against /proc/PID/io (rchar)
# see: that the disk reads several times what the program asks for
. "$(dirname "$0")/words.sh"

disk 600 --direct-io=on
file_system ledger
mkdir "$mounted/mail"
for file in $(seq 100 200); do
    dd if=/dev/zero of="$mounted/mail/$file" bs=4M count=1 2>/dev/null
done
sync -f "$mounted"
attribute "/sys/block/$device/queue/read_ahead_kb" 4096
start $(program files read-heads "$mounted/mail" --name indexes --size 65536 --rate 15)
reader=$pid
asked_before=$(process_field "$reader" rchar)
read_before=$(disk_field "$device" 3)
sleep 3
asked=$(($(process_field "$reader" rchar) - asked_before))
got=$((($(disk_field "$device" 3) - read_before) * 512))
[ "$got" -gt $((asked * 3)) ] || fail "of $got bytes that were read, $asked were asked for"
ready
