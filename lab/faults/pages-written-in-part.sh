# what: a program writes 100 bytes here and there into a file that is not in memory
# finding: io.partial_pages
# names: table.db
# also: io.sync_waits io.flushes io.journal calls.sync
# needs: losetup mkfs.ext4 python3
# experts: iostat -x, blktrace, bpftrace on ext4_write_begin
# see: a read of one page by the writer before each write
. "$(dirname "$0")/words.sh"

disk 400 --direct-io=on
file_system ledger
dd if=/dev/zero of="$mounted/table.db" bs=1M count=250 conv=fsync 2>/dev/null
start $(program files write-parts "$mounted/table.db" --name updates --size 100 --rate 150)
writer=$pid
until_true 15 grows 1 50 disk_field "$device" 1
ready
