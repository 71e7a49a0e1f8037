# what: a program listens with a backlog of 1 and never accepts
# short
# finding: tcp.accept_queue
# names: 7101
# also: tcp.no_answer tcp.retransmissions
# needs: ip ss nstat python3
# experts: ss -ltn, nstat -az TcpExtListenOverflows, ss -ltnp
# see: Recv-Q above Send-Q at one listener, and that ListenOverflows grows
. "$(dirname "$0")/words.sh"

two_hosts
start_at server $(program server 7101 --name never-accepts --mode never-accept --backlog 1)
until_true 5 listens server 7101
start_at client $(program client "$server" 7101 --name asks --mode attempt --connections 4 \
    --patience 2 --rate 1)
full() {
    at server ss -Hltn 'sport = :7101' | awk '{ exit !($2 > $3) }'
}
until_true 10 full
until_true 10 grows 1 1 counter server TcpExtListenOverflows
ready
