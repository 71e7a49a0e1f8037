# what: a client does not read, so the proxy that serves it does not read either
# finding: tcp.unread
# names: zlazy
# also: tcp.receiver_limited
# needs: ip ss python3
# experts: ss -tnpi of both connections of the proxy, strace -p of both programs
# see: that the proxy has data to send that a shut window holds back, and whose window that is
. "$(dirname "$0")/words.sh"

two_hosts
start_at server $(program server 7172 --name source --mode send)
until_true 5 listens server 7172
start_at server $(program server 7173 --name aproxy --mode proxy --source 7172)
until_true 5 listens server 7173
start_at client $(program client "$server" 7173 --name zlazy --mode idle)
full() {
    at server ss -Htn 'dport = :7172' | awk '$2 > 65536 { full = 1 } END { exit !full }'
}
until_true 15 full
ready
