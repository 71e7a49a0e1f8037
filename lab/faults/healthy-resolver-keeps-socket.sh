# what: a resolver keeps its socket for three seconds, and the DNS server answers at once
# finding: none
# needs: ip ss nstat python3
# experts: dig (Query time), tcpdump port 53
# see: answers within a millisecond
. "$(dirname "$0")/words.sh"

two_hosts
start_at server $(program dns serve)
until_true 5 at server sh -c "ss -Hlun 'sport = :53' | grep -q :53"
start_at client $(program dns ask --name crawls --keep "$server" --pause 0.1)
until_true 10 grows 1 5 counter client UdpInDatagrams
ready
