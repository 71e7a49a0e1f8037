# what: a program reads a disk from its beginning to its end in requests of 4 KiB, past the cache
# finding: io.small_requests
# names: reads-small
# needs: losetup python3
# experts: iostat -x (rareq-sz), biosnoop, strace -e pread64
# see: that the requests are 4 KiB and each begins where the last one ended
. "$(dirname "$0")/words.sh"

disk 64 --direct-io=on
dd if=/dev/zero of="$loop" bs=1M count=64 oflag=direct 2>/dev/null
start $(program files read-direct "$loop" --name reads-small --direct --rate 1500)
until_true 10 grows 1 700 disk_field "$device" 1
ready
