# what: a server has tcp_window_scaling off, on a path of 120 ms there and back
# finding: tcp.receiver_limited
# names: tcp_window_scaling is 0
# needs: ip ss ping python3
# experts: ss -ti (no wscale, rwnd_limited, snd_wnd), sysctl of both sides
# see: a window of 64 KiB that is always full, and no wscale
. "$(dirname "$0")/words.sh"

far_hosts 60
setting server net.ipv4.tcp_window_scaling=0
start_at server $(program server 7175 --name reads --mode read)
until_true 5 listens server 7175
start_at client $(program client "$server" 7175 --name pushes --mode push)
until_true 5 established client 1 'dport = :7175'
sleep 4
! at client ss -Htin 'dport = :7175' | grep -q wscale || fail 'the window is scaled'
ready
