# what: a program that has opened what it needs may open nothing more: its limit of files is 0
# finding: none
# needs: python3
# experts: /proc/PID/limits, strace (EMFILE)
# see: more open than the limit allows, which was set afterwards, and no call that fails
. "$(dirname "$0")/words.sh"

start $(program work lock-itself-in --name sandboxed)
inside=$pid
locked_in() {
    grep -q '^Max open files  *0 ' "/proc/$inside/limits"
}
until_true 10 locked_in
ready
