# what: a program reads a file eight bytes at a time, without a buffer
# finding: calls.small_reads
# names: table.csv
# look: calls --pid $PID
# needs: python3
# experts: strace -c and -e read, perf trace -s
# see: thousands of reads of eight bytes
. "$(dirname "$0")/words.sh"

folder
dd if=/dev/zero of="$work/table.csv" bs=64k count=16 2>/dev/null
start $(program work read-bytes "$work/table.csv" --name imports --rate 1000000)
reader=$pid
until_true 10 grows 1 3000 process_field "$reader" syscr
ready "$reader"
