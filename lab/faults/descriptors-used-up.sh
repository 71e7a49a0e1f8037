# what: a server may have 64 descriptors and has them: it can accept no more
# short
# finding: host.descriptors
# names: leaks-fds
# also: tcp.accept_queue tcp.unread
# needs: ip ss python3
# experts: ls /proc/PID/fd | wc -l, /proc/PID/limits, strace (EMFILE)
# see: as many descriptors as the soft limit, and EMFILE from accept
. "$(dirname "$0")/words.sh"

two_hosts
start_at server $(program work descriptors 7131 --name leaks-fds)
server_process=$pid
until_true 5 listens server 7131
start_at client $(program client "$server" 7131 --name asks --mode idle --connections 80)
used_up() {
    [ "$(ls "/proc/$server_process/fd" | wc -l)" -ge 64 ]
}
until_true 10 used_up
ready
