# what: a spool creates and removes small files and makes each durable: the journal is written most
# finding: io.journal io.sync_waits
# names: ledger
# also: io.flushes calls.sync host.pressure_io io.discards
# needs: losetup mkfs.ext4 python3
# experts: iostat -x, /proc/fs/jbd2/*/info, blktrace with debugfs icheck
# see: commits that come with each file, and that half of what is written lies in the journal
. "$(dirname "$0")/words.sh"

disk 200 --direct-io=on
file_system ledger
start $(program files create-and-remove "$mounted" --name spool --size 2000 --rate 100)
commits() {
    sed -n 's/^\([0-9]*\) transactions.*/\1/p' "/proc/fs/jbd2/$device-8/info"
}
until_true 10 grows 1 20 commits
ready
