# what: a program only stores into a mapped file, here and there, and the kernel reads for each
# finding: io.phantom_readahead io.random_mapping io.partial_pages
# names: counters.db
# also: io.readahead io.sync_waits calls.page_faults host.pressure_io
# needs: losetup mkfs.ext4 python3
# experts: iostat -x, blktrace (RA), bpftrace on filemap_fault
# see: that a program that never reads makes the disk read
. "$(dirname "$0")/words.sh"

disk 600 --direct-io=on
file_system ledger
dd if=/dev/zero of="$mounted/counters.db" bs=1M count=450 conv=fsync 2>/dev/null
attribute "/sys/block/$device/queue/read_ahead_kb" 128
start $(program files map-and-store "$mounted/counters.db" --name counts --rate 150)
until_true 15 grows 1 10000 disk_field "$device" 3
ready
