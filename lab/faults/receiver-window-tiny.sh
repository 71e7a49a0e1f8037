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
until_true 15 half_limited client rwnd 'dport = :7107'
ready
