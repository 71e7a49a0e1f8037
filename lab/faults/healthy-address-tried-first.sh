# what: a program asks localhost as ::1, is refused at once, and is served at 127.0.0.1
# finding: none
# needs: ip ss python3
# experts: strace -e connect, ss -ltn
# see: a refusal and an answer each time, both within a millisecond
. "$(dirname "$0")/words.sh"

namespace one
at one sysctl -q -w net.ipv6.conf.all.disable_ipv6=0 2>/dev/null || skip "there is no IPv6"
at one ip address show dev lo | grep -q ::1 || at one ip address add ::1/128 dev lo ||
    skip "there is no ::1"
start_at one $(program server 7170 --name answers --mode answer)
until_true 5 listens one 7170
start_at one $(program client ::1,127.0.0.1 7170 --name agent --mode ask-anew --rate 20)
until_true 10 grows 1 5 counter one TcpPassiveOpens
ready
