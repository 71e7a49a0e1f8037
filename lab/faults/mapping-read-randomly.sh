# what: a database reads its mapped file here and there, and the kernel reads 512 KiB around each
#   touch
# finding: io.random_mapping io.readahead
# names: index.db
# also: calls.page_faults host.pressure_io
# needs: losetup mkfs.ext4 python3
# experts: iostat -x, blktrace, bpftrace on filemap_fault, blockdev --getra
# see: large reads, twenty times as much as the program touches
. "$(dirname "$0")/words.sh"

disk 600 --direct-io=on
file_system ledger
dd if=/dev/zero of="$mounted/index.db" bs=1M count=450 conv=fsync 2>/dev/null
attribute "/sys/block/$device/queue/read_ahead_kb" 512
start $(program files map-and-read "$mounted/index.db" --name searches --rate 60)
# In sectors: 512 KiB for each touch would be 61440 a second, and 4 KiB are 480.
until_true 15 grows 1 10000 disk_field "$device" 3
ready
