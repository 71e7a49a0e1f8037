# what: a program waits until somebody opens the other end of a named pipe
# finding: none
# look: calls --pid $PID
# needs: python3
# experts: /proc/PID/wchan (wait_for_partner), ls -l of the path
# see: that it is in open of a named pipe, and sleeps so that signals wake it
. "$(dirname "$0")/words.sh"

folder
start $(program work open-pipe "$work/commands" --name daemon)
daemon=$pid
until_true 10 waits_in "$daemon" 'wait_for_partner\|fifo_open'
ready "$daemon"
