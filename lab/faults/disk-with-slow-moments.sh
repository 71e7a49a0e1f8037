# what: each fiftieth request of a disk takes a fifth of a second
# finding: io.slow_disk
# names: loop
# also: host.pressure_io io.queue io.small_requests
# time: 20
# needs: losetup python3
# experts: biolatency -D, iostat -x (r_await), smartctl
# see: the second hump of the histogram, far to the right; the mean hides it
. "$(dirname "$0")/words.sh"

slow_disk 64 0.3 --every 50 --long 200
for worker in 1 2; do
    start $(program files read-randomly "$loop" --name searches --direct --rate 300)
done
until_true 10 grows 2 200 disk_field "$device" 1
ready
