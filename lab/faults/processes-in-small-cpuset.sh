# what: a control group may use one processor of two, and its four processes are busy there
# finding: host.pinned
# names: computes
# also: host.busy host.pressure_cpu
# needs: python3
# experts: mpstat -P ALL, cpuset.cpus of every group, Cpus_allowed_list of /proc/PID/status
# see: one processor at 100 %, one idle, and a cpuset of one processor
. "$(dirname "$0")/words.sh"

processors 2
group cpuset batch
limit "$group" cpuset.mems 0
limit "$group" cpuset.cpus 0
start_in "$group" $(program work compute --name computes --count 4)
busy() {
    awk '$1 == "cpu0" { print $2 + $3 + $4 }' /proc/stat
}
until_true 10 grows 1 80 busy
grep -q '^Cpus_allowed_list:.0$' "/proc/$pid/status" || fail 'it may use other processors'
ready
