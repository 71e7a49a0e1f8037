# what: a process holds the lock of a file nearly all the time, and another waits for it
# finding: calls.file_lock
# names: queue.lock
# look: calls --pid $PID
# needs: python3
# experts: /proc/locks, lslocks, strace -T
# see: -> lines under one lock, and flock that takes its time
. "$(dirname "$0")/words.sh"

folder
start $(program work lock-file "$work/queue.lock" --name holds --hold 0.3)
start $(program work lock-file "$work/queue.lock" --name waits --hold 0.001)
inode=$(stat -c %i "$work/queue.lock")
blocked() {
    grep -- '->' /proc/locks | grep -q ":$inode "
}
until_true 10 blocked
ready "$pid"
