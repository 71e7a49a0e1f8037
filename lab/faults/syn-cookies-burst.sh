# what: many clients connect at once to a listener with a backlog of 5; without timestamps,
#   cookies lose their options
# finding: tcp.syn_cookies
# names: 7102
# needs: ip ping ss nstat python3
# experts: nstat -az TcpExtSyncookiesRecv, ss -tino, ss -ltn
# see: which connections lack sack and wscale among many that have them, and an old counter of
#   cookies
. "$(dirname "$0")/words.sh"

far_hosts 15
setting server net.ipv4.tcp_syncookies=1 net.ipv4.tcp_timestamps=0
start_at server $(program server 7102 --name cluster --mode answer --backlog 5)
until_true 5 listens server 7102
# The handshakes take 30 ms, and all come within 10.
start_at client $(program client "$server" 7102 --name nodes --mode ask --connections 30 --rate 10)
until_true 15 established server 20 'sport = :7102'
cookies_and_loss() {
    [ "$(counter server TcpExtSyncookiesRecv)" -ge 3 ] &&
        [ "$(at server ss -Htin state established 'sport = :7102' | grep -c rto:)" -gt \
            "$(at server ss -Htin state established 'sport = :7102' | grep -c wscale)" ]
}
until_true 10 cookies_and_loss
ready
