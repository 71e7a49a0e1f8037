# what: a link runs at 10 Mbit/s and half duplex
# finding: net.duplex
# names: lan-
# needs: ip ethtool ping ss python3
# experts: ethtool of every interface
# see: Duplex: Half
. "$(dirname "$0")/words.sh"

far_hosts 1
at server ethtool -s "$(face lan)" speed 10 duplex half autoneg off ||
    skip 'tap devices have no duplex'
at server ethtool "$(face lan)" | grep -q 'Duplex: Half' || fail 'the link is not at half duplex'
start_at server $(program server 7123 --name printer --mode answer)
until_true 5 listens server 7123
start_at client $(program client "$server" 7123 --name prints --mode ask --rate 20)
until_true 5 established server 1 'sport = :7123'
ready
