# what: a partition begins at sector 63, inside a page and a block of its disk, and is in use
# finding: host.misaligned
# names: loop
# needs: losetup sfdisk addpart mkfs.ext4 python3
# experts: fdisk -l, parted align-check, /sys/block/*/*/start
# see: a start that is no multiple of 8 sectors
. "$(dirname "$0")/words.sh"

folder
truncate -s 128M "$work/disk"
echo '63,200000,L' | sfdisk -q "$work/disk" 2>/dev/null || fail 'sfdisk cannot do it'
looped "$work/disk" --partscan --direct-io=on
whole=$loop
partition=${loop}p1
# A kernel that reads no partition tables is given the place.
if ! test -e "/sys/block/$device/${device}p1"; then
    addpart "$loop" 1 63 200000 || skip 'loop devices have no partitions here'
    later "delpart $whole 1"
fi
until_true 5 test -b "$partition"
[ "$(cat "/sys/block/$device/${device}p1/start")" = 63 ] || fail 'the partition begins elsewhere'
loop=$partition
file_system ledger
loop=$whole
start $(program files append-and-sync "$mounted/orders.log" --name order-log --size 200 --rate 5)
ready
