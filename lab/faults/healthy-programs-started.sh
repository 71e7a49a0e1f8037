# what: a program starts twenty others a second
# finding: none
# needs: python3
# experts: vmstat -f, execsnoop
# see: that it costs a few percent of a processor
. "$(dirname "$0")/words.sh"

start $(program work run-programs --name builds --rate 20)
forks() {
    awk '$1 == "processes" { print $2 }' /proc/stat
}
until_true 10 grows 1 15 forks
ready
