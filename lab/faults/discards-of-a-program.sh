# what: a program discards parts of a disk that has no file system
# finding: io.discards
# names: trimmer
# also: host.pressure_io
# needs: losetup python3
# experts: iostat -x (d/s, d_await), strace -e ioctl, blktrace
# see: discards, and that no file system on the disk is mounted with discard
. "$(dirname "$0")/words.sh"

slow_disk 200 0.2 --discard 8
start $(program files discard "$loop" --name trimmer --size 65536)
until_true 15 grows 2 200 disk_field "$device" 15
ready
