# what: a real-time process takes seven tenths of the processor that a program is bound to
# finding: calls.processor
# names: polls
# look: calls --pid $PID
# also: host.pinned host.busy host.pressure_cpu
# needs: taskset python3
# experts: perf sched timehist, ps -eo cls,rtprio,comm, chrt
# see: that the program could run and a process of class FF had its processor
. "$(dirname "$0")/words.sh"

processors 2
start taskset -c 1 $(program work compute --name polls --priority 10 --rate 0.7)
start taskset -c 1 $(program work compute --name computes)
waits() {
    awk '{ printf "%d\n", $2 / 1000000 }' "/proc/$pid/schedstat"
}
until_true 10 grows 1 400 waits
ready "$pid"
