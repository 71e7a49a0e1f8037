# what: a program accepts at once, has a backlog of 5, and sixty clients connect at the same time
# finding: tcp.accept_queue
# names: 7169
# also: tcp.no_answer tcp.retransmissions
# needs: ip ss nstat python3
# experts: nstat -az TcpExtListenOverflows, ss -ltnm (d of skmem)
# see: ListenOverflows that grows, and the one listener whose drops grow with it
. "$(dirname "$0")/words.sh"

two_hosts
start_at server $(program server 7169 --name accepts --mode read --backlog 5)
until_true 5 listens server 7169
start_at client $(program client "$server" 7169 --name bursts --mode burst --rate 60)
until_true 15 grows 1 1 counter server TcpExtListenOverflows
ready
