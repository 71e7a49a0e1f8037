# what: one of three client hosts offers neither selective acknowledgements nor window scale
# finding: tcp.options_differ
# names: 7104
# needs: ip ss nstat python3
# experts: ss -tino on the server, tcpdump of SYNs
# see: the one client host whose connections lack sack and wscale
. "$(dirname "$0")/words.sh"

namespace server one two old
for client in one two old; do
    case $client in one) last=0 ;; two) last=64 ;; old) last=128 ;; esac
    joined server "$client" "$subnet.$((last + 1))/26" "$client" lan "$subnet.$((last + 2))/26"
done
setting old net.ipv4.tcp_sack=0 net.ipv4.tcp_window_scaling=0 net.ipv4.tcp_timestamps=0
start_at server $(program server 7104 --name shop --mode answer)
until_true 5 listens server 7104
last=1
for client in one two old; do
    start_at "$client" $(program client "$subnet.$last" 7104 --mode ask --connections 6 --rate 20)
    last=$((last + 64))
done
until_true 10 established server 18 'sport = :7104'
some_without() {
    at server ss -Htin state established 'sport = :7104' >"/run/wf-$short.ss"
    [ "$(grep -c wscale "/run/wf-$short.ss")" = 12 ]
}
later "rm -f /run/wf-$short.ss"
until_true 5 some_without
[ "$(counter server TcpExtSyncookiesSent)" = 0 ] || fail 'there were SYN cookies'
ready
