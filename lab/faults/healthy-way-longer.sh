# what: another route makes the way 60 ms longer, and no queue is anywhere
# finding: none
# needs: ip ss ping python3
# experts: ping before and after, ss -ti (rtt against minrtt, and its deviation)
# see: round trips that are longer and all the same
. "$(dirname "$0")/words.sh"

[ -c /dev/net/tun ] || skip "there is no /dev/net/tun"
namespace client server
client=$subnet.1
server=$subnet.2
for place in client server; do
    at "$place" ip tuntap add dev "$(face lan)" mode tap || skip "the kernel has no tap devices"
done
start $(program path "$(named client)" "$(named server)" "$(face lan)" 1 60)
addressed client lan "$client/24"
addressed server lan "$server/24"
until_true 9 at client sh -c "</dev/null ping -c 1 -W 1 $server"
start_at server $(program server 7168 --name reads --mode read)
until_true 5 listens server 7168
start_at client $(program client "$server" 7168 --name reports --mode push --rate 300000)
longer() {
    at client ss -Htin 'dport = :7168' | tr ' ' '\n' |
        awk -F '[:/]' '$1 == "rtt" { now = $2 } $1 == "minrtt" { least = $2 }
            END { exit !(now > 110 && now > 20 * least) }'
}
until_true 25 longer
ready
