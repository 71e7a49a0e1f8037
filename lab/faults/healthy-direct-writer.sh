# what: a program writes 50 MB a second past the cache, one megabyte after the other
# finding: none
# needs: losetup python3
# experts: iostat -x
# see: large requests and a disk that is mostly idle
. "$(dirname "$0")/words.sh"

disk 128 --direct-io=on
start $(program files write-direct "$loop" --name records --direct --size 1048576 --rate 50)
# In sectors.
until_true 10 grows 1 60000 disk_field "$device" 7
ready
