# what: a program reads a file of a FUSE file system whose server takes 30 ms for each request
# finding: calls.slow_file
# names: slow-disk
# look: calls --pid $PID
# needs: losetup python3
# experts: strace -T -y, /proc/PID/stack (fuse), who has /dev/fuse open
# see: that the reads of one file wait, and which process should answer
. "$(dirname "$0")/words.sh"

slow_disk 64 30
start $(program files read-randomly "$work/slow/disk" --name reports --direct)
reader=$pid
until_true 10 waits_in "$reader" 'fuse\|request_wait_answer'
ready "$reader"
