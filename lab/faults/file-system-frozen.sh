# what: a file system is frozen, as for a snapshot, and a program writes to it
# finding: calls.slow_file
# names: frozen
# look: calls --pid $PID
# needs: losetup mkfs.ext4 fsfreeze python3
# experts: /proc/PID/wchan (percpu_rwsem_wait), /proc/PID/stack (sb_start_write)
# see: a write that does not return, and a disk that is idle
. "$(dirname "$0")/words.sh"

disk 200
file_system ledger
start $(program files append "$mounted/log" --name appends --rate 50)
writer=$pid
until_true 10 test -s "$mounted/log"
fsfreeze --freeze "$mounted" || skip 'the file system cannot be frozen'
later "fsfreeze --unfreeze $mounted"
until_true 10 waits_in "$writer" 'percpu_rwsem\|sb_start'
ready "$writer"
