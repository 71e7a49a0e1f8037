# what: a program leaves TCP_CORK on, so that each question leaves 200 ms late
# finding: tcp.corked
# names: asks
# needs: ip ss python3
# experts: tcpdump with times, strace of both, ss -ti (notsent)
# see: that a question leaves 200 ms after it was written, with nothing under way before it
. "$(dirname "$0")/words.sh"

two_hosts
start_at server $(program server 7176 --name answers --mode answer)
until_true 5 listens server 7176
start_at client $(program client "$server" 7176 --name asks --mode ask-corked)
until_true 5 established client 1 'dport = :7176'
waits() {
    at client ss -Htin 'dport = :7176' | grep -q notsent
}
until_true 10 waits
ready
