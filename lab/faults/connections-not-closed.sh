# what: a program forgets to close connections that its clients have closed
# finding: tcp.not_closed
# names: forgets
# needs: ip ss python3
# experts: ss -tn state close-wait, ls /proc/PID/fd
# see: CLOSE-WAIT sockets of one program whose number only grows
. "$(dirname "$0")/words.sh"

two_hosts
start_at server $(program server 7164 --name forgets --mode never-close)
until_true 5 listens server 7164
start_at client $(program client "$server" 7164 --name visits --mode attempt --rate 30)
left() {
    at server ss -Htn state close-wait 'sport = :7164' | wc -l
}
until_true 15 grows 1 10 left
ready
