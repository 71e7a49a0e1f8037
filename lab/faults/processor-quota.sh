# what: a control group has a quota of a fifth of a processor, and its program needs more
# short
# finding: host.cgroup_cpu
# names: batch-
# also: host.pressure_cpu calls.held_back
# needs: python3
# experts: cpu.stat of every group (nr_throttled), pidstat (%wait)
# see: nr_throttled of one group that grows with nr_periods
. "$(dirname "$0")/words.sh"

group cpu batch
limit "$group" cpu.cfs_period_us 100000
limit "$group" cpu.cfs_quota_us 20000
start_in "$group" $(program work compute --name computes)
throttled() {
    awk '$1 == "nr_throttled" { print $2 }' "$group/cpu.stat"
}
until_true 10 grows 1 7 throttled
ready
