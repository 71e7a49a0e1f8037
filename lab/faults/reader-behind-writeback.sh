# what: an export writes through the cache as fast as a disk takes it, and the single reads of a
#   database on that disk stand behind the writes of the kernel
# finding: io.neighbour
# names: catalogue
# names: exports
# also: io.dirty_throttled io.slow_disk io.queue host.pressure_io
# needs: losetup mkfs.ext4 python3
# experts: iostat -x (r_await, wareq-sz), biosnoop, bpftrace on writeback_dirty_folio
# see: that the reads of one process are fast alone, that workers of the kernel write meanwhile, and
#   whose pages these are
. "$(dirname "$0")/words.sh"

slow_disk 400 0.2 --rate 20000000
file_system ledger
dd if=/dev/zero of="$mounted/catalogue" bs=1M count=60 status=none && sync -f "$mounted" ||
    fail 'cannot write a file of 60 MB'
bdi=/sys/class/bdi/$(cat "/sys/block/$device/dev")
# No more of this disk's pages at a time than it writes in a second.
attribute "$bdi/strict_limit" 1
later "echo 100 >$bdi/max_ratio"
echo 20000000 >"$bdi/max_bytes" || skip 'the kernel has no limit of bytes for a disk'
start $(program files read-randomly "$mounted/catalogue" --name catalogue --direct --rate 200)
reader=$pid
reads() {
    process_field "$reader" read_bytes
}
# Alone it has the 200 reads a second that it asks for.
until_true 10 grows 1 600000 reads
start $(program files write-steadily "$mounted/export.csv" --name exports --size 1048576)
few_reads() {
    ! grows 2 400000 reads
}
until_true 20 few_reads
ready
