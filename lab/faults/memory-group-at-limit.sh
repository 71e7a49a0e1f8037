# what: a control group may have 40 MB, and its program reads a file of 80 MB again and again
# finding: host.cgroup_memory
# names: batch-
# also: host.pressure_memory host.pressure_io io.readahead io.neighbour
# needs: losetup mkfs.ext4 python3
# experts: memory.stat and memory.failcnt of every group, bpftrace on workingset_refault
# see: failcnt of one group that grows, and a disk that reads the same file again and again
. "$(dirname "$0")/words.sh"

disk 128 --direct-io=on
file_system ledger
dd if=/dev/zero of="$mounted/table.db" bs=1M count=80 oflag=direct 2>/dev/null
group memory batch
limit "$group" memory.limit_in_bytes 41943040
start_in "$group" $(program files read-again "$mounted/table.db" --name reports --size 131072 \
    --rate 400)
refused() {
    cat "$group/memory.failcnt"
}
until_true 15 grows 1 20 refused
until_true 15 grows 2 40000 disk_field "$device" 3
ready
