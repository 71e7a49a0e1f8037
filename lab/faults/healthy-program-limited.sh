# what: a program sends 20 KB when it has something to say, ten times a second
# finding: none
# also: tcp.app_limited
# needs: ip ss python3
# experts: ss -ti (app_limited)
# see: that the connection is idle most of the time because its program is
. "$(dirname "$0")/words.sh"

two_hosts
start_at server $(program server 7154 --name reads --mode read)
until_true 5 listens server 7154
start_at client $(program client "$server" 7154 --name reports --mode push --rate 160000)
until_true 10 established client 1 'dport = :7154'
ready
