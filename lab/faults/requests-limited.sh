# what: max_sectors_kb of a disk in use is 64, while the disk supports more
# finding: host.request_size
# names: loop
# needs: losetup python3
# experts: /sys/block/*/queue/max_sectors_kb and max_hw_sectors_kb, iostat -x (areq-sz)
# see: the two numbers next to each other
. "$(dirname "$0")/words.sh"

disk 128 --direct-io=on
dd if=/dev/zero of="$loop" bs=1M count=128 oflag=direct 2>/dev/null
attribute "/sys/block/$device/queue/max_sectors_kb" 64
start $(program files read-direct "$loop" --name reads-large --direct --size 1048576 --rate 20)
# Twenty reads a second of the program become 320.
until_true 10 grows 1 200 disk_field "$device" 1
ready
