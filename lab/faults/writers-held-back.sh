# what: a program writes faster than its disk, whose dirty pages are limited to 4 MB, and is held
#   back
# finding: io.dirty_throttled
# names: exports
# also: host.pressure_io io.slow_disk io.queue
# needs: losetup mkfs.ext4 python3
# experts: /proc/PID/stack (balance_dirty_pages), bpftrace on balance_dirty_pages, /proc/vmstat
#   (nr_dirty)
# see: that the writer sleeps in balance_dirty_pages, with the limit of that disk reached
. "$(dirname "$0")/words.sh"

slow_disk 300 1 --rate 8000000
file_system ledger
bdi=/sys/class/bdi/$(cat "/sys/block/$device/dev")
# A limit of this disk alone: vm.dirty_bytes would be that of the whole machine.
attribute "$bdi/strict_limit" 1
later "echo 100 >$bdi/max_ratio"
echo 4194304 >"$bdi/max_bytes" || skip 'the kernel has no limit of bytes for a disk'
start $(program files write-steadily "$mounted/export.csv" --name exports --size 65536)
writer=$pid
until_true 20 waits_in "$writer" balance_dirty_pages
ready
