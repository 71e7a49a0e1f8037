# what: a file system is mounted with data=journal, and all that is written is written twice
# finding: io.journal
# names: data=journal
# also: io.queue io.slow_disk io.dirty_throttled io.neighbour io.flushes host.pressure_io
# needs: losetup mkfs.ext4 python3
# experts: /proc/mounts, iostat -x (wkB/s) against /proc/PID/io (write_bytes), blktrace
# see: twice as much at the disk as the program writes, half of it by jbd2
. "$(dirname "$0")/words.sh"

slow_disk 400 0.2 --rate 60000000
mount_options=data=journal,commit=1
file_system ledger
start $(program files write-steadily "$mounted/export.csv" --name exports --size 65536 --rate 160)
# In sectors, of 10 MB a second.
until_true 15 grows 2 60000 disk_field "$device" 7
ready
