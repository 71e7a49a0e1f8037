# what: a program has a UDP socket and does not read what comes to it
# short
# finding: net.udp_overflow
# names: 7121
# needs: ip ss nstat python3
# experts: nstat UdpRcvbufErrors, ss -unmp, /proc/net/udp (drops)
# see: RcvbufErrors that grows, and the one socket whose Recv-Q is full
. "$(dirname "$0")/words.sh"

two_hosts
start_at server $(program datagrams receive 7121 --name never-reads)
until_true 5 at server sh -c "ss -Hlun 'sport = :7121' | grep -q 7121"
start_at client $(program datagrams send "$server" 7121 --name reports --rate 500)
until_true 10 grows 1 200 counter server UdpRcvbufErrors
ready
