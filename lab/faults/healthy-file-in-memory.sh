# what: a program reads a file of 20 MB again and again, 100 MB a second, and the file is in memory
# finding: none
# needs: losetup mkfs.ext4 python3
# experts: iostat -x, /proc/PID/io (rchar against read_bytes)
# see: that the disk is idle
. "$(dirname "$0")/words.sh"

disk 64 --direct-io=on
file_system ledger
dd if=/dev/zero of="$mounted/table.db" bs=1M count=20 conv=fsync 2>/dev/null
start $(program files read-again "$mounted/table.db" --name reports --size 131072 --rate 800)
asked() {
    process_field "$pid" rchar
}
until_true 10 grows 1 50000000 asked
! grows 1 1000 disk_field "$device" 3 || fail 'the file is not in memory'
ready
