# what: the DNS server answers each question after two seconds
# finding: net.dns_slow
# names: 53
# names: asks-names
# needs: ip ss python3
# experts: dig (Query time), tcpdump port 53, strace -T of the client
# see: two seconds between question and answer
. "$(dirname "$0")/words.sh"

two_hosts
resolver "$server"
start_at server $(program dns serve --delay 2)
until_true 5 at server sh -c "ss -Hlun 'sport = :53' | grep -q :53"
start_at client $(program dns ask --name asks-names)
asking() {
    at client ss -Hun 'dport = :53' | grep -q "$server:53"
}
until_true 10 asking
ready
