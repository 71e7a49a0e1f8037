# what: a file system records the time of every read (strictatime)
# finding: host.access_times
# names: ledger
# needs: losetup mkfs.ext4 python3
# experts: /proc/mounts, iostat -x on a disk that is only read
# see: neither relatime nor noatime among the options, and writes without a writer
. "$(dirname "$0")/words.sh"

disk 128 --direct-io=on
mount_options=strictatime
file_system ledger
mkdir "$mounted/mail"
for file in $(seq 100 150); do
    echo text >"$mounted/mail/$file"
done
sync -f "$mounted"
grep " $mounted " /proc/mounts | grep -Evq 'relatime|noatime' ||
    fail 'access times are not recorded'
start $(program files read-heads "$mounted/mail" --name indexes --size 16384 --rate 50)
before=$(stat -c %X "$mounted/mail/100")
accessed() {
    [ "$(stat -c %X "$mounted/mail/100")" -gt "$before" ]
}
until_true 10 accessed
ready
