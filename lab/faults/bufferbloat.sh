# what: a router's link of 20 Mbit/s has a queue of 2 MB, and one upload keeps it full
# finding: tcp.bufferbloat
# names: 7116
# also: net.queue_drops tcp.retransmissions
# needs: ip tc ss ping python3
# experts: ping while the upload runs, ss -ti (rtt against minrtt), tc -s qdisc on the router
#   (backlog)
# see: a round trip of 0.3 s that was 0.1 ms, and the backlog of a queue that is not on this host
. "$(dirname "$0")/words.sh"

with_router
unpaced client
at router tc qdisc add dev "$(face far)" root tbf rate 20mbit burst 32kb limit 2mb ||
    skip 'the kernel has no tbf'
start_at server $(program server 7116 --name backup --mode read)
until_true 5 listens server 7116
start_at client $(program client "$server" 7116 --name uploads --mode push)
bloated() {
    at client ss -Htin 'dport = :7116' | tr ' ' '\n' |
        awk -F '[:/]' '$1 == "rtt" { now = $2 } $1 == "minrtt" { least = $2 }
            END { exit !(now > 150 && now > 20 * least) }'
}
until_true 20 bloated
ready
