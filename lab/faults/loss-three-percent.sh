# what: a path loses 3 % of the packets of a transfer
# finding: tcp.retransmissions
# names: 7106
# also: tcp.small_window
# needs: ip nft ss nstat ethtool python3
# experts: nstat TcpRetransSegs TcpOutSegs, ss -ti (retrans), tcpretrans
# see: retransmitted segments against all sent, by destination
. "$(dirname "$0")/words.sh"

two_hosts
whole_packets client lan
whole_packets server lan
start_at server $(program server 7106 --mode read)
until_true 5 listens server 7106
filter server tcp dport 7106 tcp flags ack numgen random mod 100 '<' 3 drop
start_at client $(program client "$server" 7106 --name sends --mode push --connections 2 \
    --rate 2000000)
until_true 15 grows 1 20 counter client TcpRetransSegs
ready
