# what: a program has set a send buffer of 4 KiB, on a path of 20 ms
# finding: tcp.send_buffer
# names: 7108
# needs: ip ping ss python3
# experts: ss -tmi (sndbuf_limited, skmem), strace of setsockopt
# see: sndbuf_limited near 100 % of busy, tb far below what the path holds
. "$(dirname "$0")/words.sh"

far_hosts 10
start_at server $(program server 7108 --mode read)
until_true 5 listens server 7108
start_at client $(program client "$server" 7108 --name small-buffer --mode push --send-buffer 4096)
limited() {
    at client ss -Htin 'dport = :7108' | grep -Eq 'sndbuf_limited:[0-9]+ms\([5-9][0-9]|sndbuf_limited:[0-9]+ms\(100'
}
until_true 15 limited
ready
