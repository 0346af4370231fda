#!/usr/bin/env bash
# What a received token costs flashrig's streaming client, AIPerf's and GuideLLM's, in turns, on the
# same simulated server. Prints a table in the manner of docs/BENCHMARKS.md.
#
#   cargo build --release && benches/peers/run.sh [options of compare.py]
#
# Each peer gets a Python environment of its own (their dependencies need not agree) under
# $PEERS_DIR, by default a folder in the cache; remove it when done. A peer that cannot be installed
# is a row that says so. Linux only: CPU time of whole process trees is read there.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
peers=${PEERS_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/flashrig-peers}
mkdir -p "$peers"

for peer in aiperf guidellm; do
    if [ ! -x "$peers/$peer/bin/$peer" ]; then
        echo "installing $peer into $peers/$peer" >&2
        # Its line of the requirements, with the extras that make it faster.
        wanted=$(grep "^$peer\\b" "$here/requirements.txt")
        { python3 -m venv "$peers/$peer" \
            && "$peers/$peer/bin/pip" install --quiet "$wanted"; } \
            || echo "$peer could not be installed; going on without it" >&2
    fi
done

# No bytecode is left in the source tree.
exec python3 -B "$here/compare.py" --peers "$peers" "$@"
