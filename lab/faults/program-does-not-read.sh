# what: a program accepts a connection and never reads from it
# finding: tcp.unread
# names: 7105
# also: tcp.receiver_limited tcp.app_limited
# needs: ip ss python3
# experts: ss -tnp, strace -p
# see: a Recv-Q that stays full, look after look
. "$(dirname "$0")/words.sh"

two_hosts
start_at server $(program server 7105 --name never-reads --mode never-read)
until_true 5 listens server 7105
start_at client $(program client "$server" 7105 --name pushes --mode push)
unread() {
    at server ss -Htn 'sport = :7105' |
        awk '$1 == "ESTAB" && $2 > 65536 { found = 1 } END { exit !found }'
}
until_true 10 unread
ready
