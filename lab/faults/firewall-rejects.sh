# what: a firewall answers the SYNs to a listening server with resets
# finding: tcp.refused
# names: 7133
# needs: ip nft ss nstat python3
# experts: nstat TcpAttemptFails, tcpdump on both hosts, nft list ruleset
# see: resets although a program listens there
. "$(dirname "$0")/words.sh"

two_hosts
start_at server $(program server 7133 --name serves --mode read)
until_true 5 listens server 7133
filter server tcp dport 7133 reject with tcp reset
start_at client $(program client "$server" 7133 --name asks --mode attempt --rate 30)
until_true 10 grows 1 15 counter client TcpAttemptFails
ready
