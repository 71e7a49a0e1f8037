# what: a control group may have 64 MB, its program uses 120 MB, and the rest is swapped out and in
# finding: host.swapping host.cgroup_memory
# also: host.pressure_memory host.pressure_io host.pressure_cpu io.readahead io.small_requests
# needs: mkswap swapon python3
# experts: vmstat (si, so), memory.stat of every group, smem
# see: si and so above zero all the time, and whose memory it is
. "$(dirname "$0")/words.sh"

[ -e /sys/class/zram-control/hot_add ] || skip 'the kernel has no zram'
zram=$(cat /sys/class/zram-control/hot_add)
later "unzram $zram"
unzram() {
    for attempt in 1 2 3 4 5 6 7 8 9 10; do
        echo "$1" >/sys/class/zram-control/hot_remove 2>/dev/null && return 0
        sleep 0.3
    done
    return 1
}
echo 256M >"/sys/block/zram$zram/disksize" || skip 'zram takes no size'
mkswap -q "/dev/zram$zram" 2>/dev/null || mkswap "/dev/zram$zram" >/dev/null || fail 'mkswap failed'
swapon "/dev/zram$zram" || skip 'no swap can be added'
later "swapoff /dev/zram$zram"
group memory batch
limit "$group" memory.limit_in_bytes 67108864
start_in "$group" $(program work touch-memory --name caches --count 120 --rate 4000)
swapped_in() {
    awk '$1 == "pswpin" { print $2 }' /proc/vmstat
}
until_true 20 grows 1 500 swapped_in
ready
