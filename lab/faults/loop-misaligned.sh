# what: a loop device begins 63 sectors into its file, inside a page, and its file system is in use
# finding: host.misaligned
# names: loop
# needs: losetup mkfs.ext4 python3
# experts: losetup --list (OFFSET)
# see: an offset that is no multiple of 4096
. "$(dirname "$0")/words.sh"

disk 128 --offset 32256
losetup --list --noheadings --output OFFSET "$loop" | grep -q 32256 ||
    fail 'the device begins elsewhere'
file_system ledger
start $(program files append-and-sync "$mounted/orders.log" --name order-log --size 200 --rate 5)
ready
