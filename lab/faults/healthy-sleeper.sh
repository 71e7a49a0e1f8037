# what: a program sleeps, and wakes twenty times a second
# finding: none
# look: calls --pid $PID
# needs: python3
# experts: strace -c -w
# see: that all its time is in clock_nanosleep, as it wants
. "$(dirname "$0")/words.sh"

start $(program work sleep --name sleeps)
until_true 5 waits_in "$pid" nanosleep
ready "$pid"
