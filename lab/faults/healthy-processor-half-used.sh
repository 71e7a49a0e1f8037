# what: a program computes for four tenths of the time of one processor
# finding: none
# needs: python3
# experts: top, /proc/pressure/cpu
# see: that nobody waits for it
. "$(dirname "$0")/words.sh"

start $(program work compute --name computes --rate 0.4)
used() {
    ticks "$pid"
}
until_true 10 grows 2 20 used
ready
