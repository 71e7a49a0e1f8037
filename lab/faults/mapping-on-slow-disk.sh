# what: a program waits in page faults: its mapped file lies on a disk that takes 10 ms
# finding: calls.page_faults
# names: searches
# look: calls --pid $PID
# also: io.random_mapping io.readahead
# needs: losetup python3
# experts: perf trace -F all, bpftrace on filemap_fault, offcputime
# see: sleep in a page fault, outside of all calls
. "$(dirname "$0")/words.sh"

slow_disk 128 10
start $(program files map-and-read "$work/slow/disk" --name searches)
reader=$pid
until_true 10 waits_in "$reader" 'folio_wait\|filemap_fault'
ready "$reader"
