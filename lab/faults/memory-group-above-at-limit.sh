# what: a control group may have 40 MB, and a program in a group below it, as in a pod, reads a
#   file of 80 MB again and again
# finding: host.cgroup_memory
# names: pod-
# also: host.pressure_memory host.pressure_io io.readahead io.neighbour
# needs: losetup mkfs.ext4 python3
# experts: memory.failcnt of every group, total_workingset_refault_file in memory.stat
# see: failcnt of the upper group that grows, while its own counts without those below stay 0
. "$(dirname "$0")/words.sh"

disk 128 --direct-io=on
file_system ledger
dd if=/dev/zero of="$mounted/table.db" bs=1M count=80 oflag=direct 2>/dev/null
group memory pod
pod=$group
limit "$pod" memory.limit_in_bytes 41943040
mkdir "$pod/app" || fail "cannot make $pod/app"
later "ungroup $pod/app"
start_in "$pod/app" $(program files read-again "$mounted/table.db" --name reports --size 131072 \
    --rate 400)
refused() {
    cat "$pod/memory.failcnt"
}
until_true 15 grows 1 20 refused
until_true 15 grows 2 40000 disk_field "$device" 3
ready
