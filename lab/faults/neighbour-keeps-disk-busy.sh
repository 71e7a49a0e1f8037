# what: a backup keeps a disk busy with 32 requests at a time, and a database's single reads wait
#   behind them
# finding: io.neighbour
# names: database
# names: fio
# also: io.slow_disk io.queue host.pressure_io io.small_requests
# needs: losetup fio python3
# experts: iostat -x (aqu-sz, r_await), biosnoop, biotop
# see: that the reads of one process are fast alone and wait behind those of another
. "$(dirname "$0")/words.sh"

slow_disk 256 1
start $(program files read-randomly "$loop" --name database --direct --rate 50)
reader=$pid
until_true 10 grows 1 40 disk_field "$device" 1
start fio --name=backup --filename="$loop" --rw=randread --bs=32k --iodepth=32 --ioengine=libaio \
    --direct=1 --thread --time_based --runtime=1d --output=/dev/null
# The database was given 50 reads a second; behind 32 others there are at most 35.
database_reads() {
    process_field "$reader" read_bytes
}
slower() {
    ! grows 2 320000 database_reads
}
until_true 15 slower
ready
