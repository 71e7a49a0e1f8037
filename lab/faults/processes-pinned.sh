# what: four busy processes are bound to one processor while the other is idle
# finding: host.pinned
# names: computes
# also: host.busy host.pressure_cpu
# needs: taskset python3
# experts: mpstat -P ALL, taskset -p of each busy process
# see: one processor at 100 %, one idle, and an affinity of one processor
. "$(dirname "$0")/words.sh"

processors 2
start taskset -c 1 $(program work compute --name computes --count 4)
busy() {
    awk '$1 == "cpu1" { print $2 + $3 + $4 }' /proc/stat
}
until_true 10 grows 1 80 busy
[ "$(taskset -p "$pid" | sed 's/.*: //')" = 2 ] || fail 'it is not bound to the processor'
ready
