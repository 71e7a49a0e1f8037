# what: a file system has space, and no inode left
# finding: host.disk_full
# names: ledger
# needs: losetup mkfs.ext4 df python3
# experts: df -i
# see: 100 % of the inodes of a file system that df shows as nearly empty
. "$(dirname "$0")/words.sh"

disk 64
file_system ledger -N 64
count=0
while touch "$mounted/session$count" 2>/dev/null; do
    count=$((count + 1))
    [ "$count" -lt 1000 ] || fail 'the inodes do not come to an end'
done
start $(program files fail-to-write "$mounted/new" --name saves --size 20)
[ "$(df --output=ipcent "$mounted" | tail -n 1 | tr -d ' %')" = 100 ] ||
    fail 'there are inodes left'
[ "$(df --output=pcent "$mounted" | tail -n 1 | tr -d ' %')" -lt 50 ] ||
    fail 'there is no space either'
ready
