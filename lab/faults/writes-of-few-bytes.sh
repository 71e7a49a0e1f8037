# what: a program writes a file seven bytes at a time, without a buffer
# finding: calls.small_writes
# names: table.csv
# look: calls --pid $PID
# needs: python3
# experts: strace -c and -e write, perf trace -s
# see: thousands of writes of seven bytes
. "$(dirname "$0")/words.sh"

folder
start $(program work write-bytes "$work/table.csv" --name exports --rate 1000000)
writer=$pid
until_true 10 grows 1 3000 process_field "$writer" syscw
ready "$writer"
