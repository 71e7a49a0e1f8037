# what: a program reads 100 KB a second of what could come at any rate
# finding: tcp.receiver_limited
# names: 7126
# also: tcp.app_limited tcp.unread
# needs: ip ss python3
# experts: ss -ti (rwnd_limited), ss -tn on the receiver (Recv-Q), its stack
# see: rwnd_limited at the sender, a Recv-Q that is never empty at the receiver
. "$(dirname "$0")/words.sh"

two_hosts
start_at server $(program server 7126 --name reads-slowly --mode read --rate 100000)
until_true 5 listens server 7126
start_at client $(program client "$server" 7126 --name pushes --mode push)
until_true 15 half_limited client rwnd 'dport = :7126'
ready
