# what: a control group has a quota of a fifth of a processor; the look is at its program
# finding: calls.held_back
# look: calls --pid $PID
# also: host.cgroup_cpu
# needs: python3
# experts: perf sched timehist, cpu.stat of its group
# see: that the thread could run, did not, and that its processor was idle
. "$(dirname "$0")/words.sh"

group cpu batch
limit "$group" cpu.cfs_period_us 100000
limit "$group" cpu.cfs_quota_us 20000
start_in "$group" $(program work compute --name computes)
throttled() {
    awk '$1 == "nr_throttled" { print $2 }' "$group/cpu.stat"
}
until_true 10 grows 1 7 throttled
ready "$pid"
