# what: tcp_syncookies is 2: every connection is made of a cookie, and without timestamps has no
#   options
# finding: tcp.syn_cookies
# names: 7103
# needs: ip ss nstat python3
# experts: sysctl net.ipv4.tcp_syncookies, nstat -az TcpExtSyncookiesRecv, ss -tino
# see: connections without sack and wscale on a path of new kernels, and a sysctl of 2
. "$(dirname "$0")/words.sh"

two_hosts
setting server net.ipv4.tcp_syncookies=2 net.ipv4.tcp_timestamps=0
start_at server $(program server 7103 --name forced --mode answer)
until_true 5 listens server 7103
start_at client $(program client "$server" 7103 --name asks --mode ask --connections 8 --rate 10)
until_true 10 established server 8 'sport = :7103'
without_options() {
    [ "$(counter server TcpExtSyncookiesRecv)" -ge 8 ] &&
        ! at server ss -Htin state established 'sport = :7103' | grep -q wscale
}
until_true 5 without_options
ready
