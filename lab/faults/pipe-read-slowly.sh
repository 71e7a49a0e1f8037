# what: a program writes to a pipe whose reader takes 50 ms for each 4 KiB
# finding: calls.reader
# names: pipes
# look: calls --pid $PID
# needs: python3
# experts: strace -T -y -p, /proc/PID/wchan (pipe_write)
# see: that nearly all its time is in write of one pipe, and who has its other end
. "$(dirname "$0")/words.sh"

start $(program work write-to-slow-reader --name pipes --hold 0.05)
writer=$pid
until_true 10 waits_in "$writer" pipe_write
ready "$writer"
