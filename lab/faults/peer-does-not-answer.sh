# what: a firewall drops the SYNs to a server
# finding: tcp.no_answer
# names: 7110
# needs: ip nft ss nstat python3
# experts: ss -tn state syn-sent, tcpdump, nstat -az TcpExtTCPTimeouts
# see: connections that stay in SYN-SENT
. "$(dirname "$0")/words.sh"

two_hosts
filter server tcp dport 7110 drop
start_at client $(program client "$server" 7110 --name asks-in-vain --mode attempt --connections 4 \
    --patience 6)
waiting() {
    [ "$(at client ss -Htn state syn-sent 'dport = :7110' | wc -l)" -ge 3 ]
}
until_true 10 waiting
until_true 10 grows 2 1 counter client TcpRetransSegs
ready
