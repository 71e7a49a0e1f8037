# what: a program with a backlog of 4 accepts five times a second, and eight clients want more
# finding: tcp.accept_queue
# names: 7132
# also: tcp.no_answer tcp.retransmissions tcp.unread
# needs: ip ss nstat python3
# experts: nstat -az TcpExtListenOverflows, ss -ltnp, strace -c
# see: ListenOverflows that grows, and which of all listeners has its queue full
. "$(dirname "$0")/words.sh"

two_hosts
start_at server $(program server 7132 --name accepts-slowly --mode read --backlog 4 \
    --accept-delay 0.2)
until_true 5 listens server 7132
start_at client $(program client "$server" 7132 --name asks --mode attempt --connections 8 --rate 4)
until_true 15 grows 1 1 counter server TcpExtListenOverflows
ready
