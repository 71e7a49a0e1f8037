# what: a file system is full, and a program tries again and again to save its file
# short
# finding: host.disk_full
# names: ledger
# needs: losetup mkfs.ext4 df python3
# experts: df, strace of the program (ENOSPC)
# see: 100 % of one file system, and ENOSPC from write
. "$(dirname "$0")/words.sh"

disk 64
file_system ledger -m 0
dd if=/dev/zero of="$mounted/old" bs=64k 2>/dev/null
dd if=/dev/zero of="$mounted/older" bs=1k 2>/dev/null
start $(program files fail-to-write "$mounted/new" --name saves --size 20000)
[ "$(df --output=pcent "$mounted" | tail -n 1 | tr -d ' %')" = 100 ] || fail 'there is space left'
! dd if=/dev/zero of="$mounted/probe" bs=20k count=1 2>/dev/null || fail 'a file could be written'
ready
