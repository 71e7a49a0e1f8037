# what: eight threads need one mutex for all that they do
# finding: calls.lock
# look: calls --pid $PID
# needs: python3
# experts: perf trace -e futex, offcputime, gdb
# see: that all threads wait in futex for one address
. "$(dirname "$0")/words.sh"

start $(program work lock --name contends --count 8)
in_stack() {
    [ "$(cat "/proc/$pid"/task/*/stack | grep -c 'futex_wait_queue\|futex_do_wait')" -ge 5 ]
}
until_true 10 in_stack
ready "$pid"
