# what: nothing is planted
# finding: none
# needs: sh
# experts: all of the above
# see: nothing, everywhere
. "$(dirname "$0")/words.sh"

ready
