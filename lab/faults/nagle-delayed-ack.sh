# what: a client sends each question in two small writes, without TCP_NODELAY
# finding: tcp.delayed_ack
# names: 7115
# also: calls.peer tcp.app_limited
# needs: ip nstat ss python3
# experts: tcpdump with times, nstat TcpExtDelayedACKs, strace -T of both
# see: that the second half leaves 40 ms after the first, when the acknowledgement comes
. "$(dirname "$0")/words.sh"

two_hosts
start_at server $(program server 7115 --name answers --mode answer --request 200)
until_true 5 listens server 7115
start_at client $(program client "$server" 7115 --name asks-in-two --mode ask-in-two \
    --connections 3 \
    --question 200)
until_true 10 grows 1 30 counter server TcpExtDelayedACKs
# 25 questions a second on each connection are 40 ms for each.
! grows 1 400 counter client TcpOutSegs || fail 'the questions do not wait'
ready
