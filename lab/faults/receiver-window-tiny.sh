# what: a server has set a receive buffer of 4 KiB, on a path of 20 ms
# finding: tcp.receiver_limited
# names: 7107
# needs: ip ping ss python3
# experts: ss -ti (rwnd_limited, snd_wnd), strace of setsockopt
# see: rwnd_limited near 100 % of busy
. "$(dirname "$0")/words.sh"

far_hosts 10
start_at server $(program server 7107 --name small-buffer --mode read --receive-buffer 4096)
until_true 5 listens server 7107
start_at client $(program client "$server" 7107 --name sends --mode push)
limited() {
    at client ss -Htin 'dport = :7107' | grep -Eq 'rwnd_limited:[0-9]+ms\([5-9][0-9]|rwnd_limited:[0-9]+ms\(100'
}
until_true 15 limited
ready
