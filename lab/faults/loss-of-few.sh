# what: a path loses 10 % of the packets of a service with ten questions a second
# finding: tcp.retransmissions
# names: asks
# needs: ip nft ss nstat python3
# experts: ss -ti (retrans), nstat TcpRetransSegs, tcpdump
# see: each tenth question that takes a fifth of a second or more, and is sent twice
. "$(dirname "$0")/words.sh"

two_hosts
start_at server $(program server 7171 --name answers --mode answer)
until_true 5 listens server 7171
start_at client $(program client "$server" 7171 --name asks --mode ask --connections 3 --rate 10)
until_true 5 established client 3 'dport = :7171'
filter server tcp dport 7171 numgen random mod 100 '<' 10 drop
until_true 15 grows 1 1 counter client TcpRetransSegs
ready
