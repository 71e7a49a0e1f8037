# what: the first of two DNS servers does not answer, and each look-up waits for it
# finding: calls.names
# names: 53
# look: calls --pid $PID
# time: 16
# also: calls.peer
# needs: ip nft ss python3
# experts: strace -T -e trace=network, tcpdump port 53, resolv.conf
# see: poll of the first server's socket ends in a timeout each time
. "$(dirname "$0")/words.sh"

two_hosts
resolver "$subnet.2" "$subnet.3"
at server ip address add "$subnet.3/24" dev "$(face lan)"
filter server ip daddr "$subnet.2" udp dport 53 drop
start_at server $(program dns serve)
until_true 5 at server sh -c "ss -Hlun 'sport = :53' | grep -q :53"
start_at client $(program dns ask --name asks-names)
asker=$pid
asking() {
    at client ss -Hun 'dport = :53' | grep -q "$subnet.2:53"
}
until_true 10 asking
ready "$asker"
