# what: a transfer of 100 MB a second over a path that can do more
# finding: none
# needs: ip ss nstat python3
# experts: ss -ti, nstat
# see: no retransmission, no limit but the sender's own rate
. "$(dirname "$0")/words.sh"

two_hosts
start_at server $(program server 7152 --name stores --mode read)
until_true 5 listens server 7152
start_at client $(program client "$server" 7152 --name sends --mode push --rate 100000000)
received() {
    at server cat "/sys/class/net/$(face lan)/statistics/rx_bytes"
}
until_true 10 grows 1 50000000 received
! grows 1 50 counter client TcpRetransSegs || fail 'segments are lost'
ready
