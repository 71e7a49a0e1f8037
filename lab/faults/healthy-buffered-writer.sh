# what: a program writes a file at 20 MB a second, through the cache
# finding: none
# needs: losetup mkfs.ext4 python3
# experts: iostat -x, /proc/vmstat (nr_dirty)
# see: that the disk keeps up with what is dirtied
. "$(dirname "$0")/words.sh"

disk 256 --direct-io=on
file_system ledger
start $(program files write-steadily "$mounted/export.csv" --name exports --size 65536 --rate 305)
written() {
    process_field "$pid" wchar
}
until_true 10 grows 1 15000000 written
ready
