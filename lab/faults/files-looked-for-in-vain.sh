# what: a program looks for its settings in twenty folders that do not exist, again and again
# finding: calls.missing_files
# names: settings.conf
# look: calls --pid $PID
# needs: strace python3
# experts: strace -c (errors) and -e trace=%stat
# see: thousands of ENOENT, nearly as many as calls
. "$(dirname "$0")/words.sh"

start $(program work look-for-missing /var/tmp/plugins --name looks --rate 4000)
searcher=$pid
sleep 0.5
misses() {
    timeout 1 strace -p "$searcher" 2>&1 >/dev/null | grep -c ENOENT
}
[ "$(misses)" -ge 100 ] || fail 'it looks for nothing'
ready "$searcher"
