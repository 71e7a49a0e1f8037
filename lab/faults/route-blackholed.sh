# what: a router on the way drops what goes to a server, without a word
# finding: tcp.no_answer
# names: 7112
# needs: ip ss nstat python3
# experts: ss -tn state syn-sent, traceroute -T, ip route get on the router
# see: SYN-SENT here, and the hop where the trace ends
. "$(dirname "$0")/words.sh"

with_router
at router ip route add blackhole "$server/32"
start_at client $(program client "$server" 7112 --name asks-in-vain --mode attempt --connections 4 \
    --patience 6)
waiting() {
    [ "$(at client ss -Htn state syn-sent 'dport = :7112' | wc -l)" -ge 3 ]
}
until_true 10 waiting
until_true 10 grows 2 1 counter client TcpRetransSegs
ready
