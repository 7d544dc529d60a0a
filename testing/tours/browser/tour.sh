#!/usr/bin/env bash
# The tour of the console: a server of its own, with the demo's school in it, and a real browser.
# KSTONE says which binary, CHROMIUM which browser; pictures of every page go to $1.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
screens=$1
log=$screens/server.log
mkdir -p "$screens"
: >"$log"
"$KSTONE" serve --memory --demo --console 127.0.0.1:0 --dynamodb 127.0.0.1:0 --redis 127.0.0.1:0 \
    --dapr-http 127.0.0.1:0 --dapr-grpc 127.0.0.1:0 >"$log" 2>&1 &
server=$!
trap 'kill "$server" 2>/dev/null || true; wait "$server" 2>/dev/null || true' EXIT

# Waits until a command succeeds.
await() {
    local tries=0
    until "$@"; do
        tries=$((tries + 1))
        if [ "$tries" -gt 1200 ] || ! kill -0 "$server" 2>/dev/null; then
            echo "waited in vain for: $*" >&2
            cat "$log" >&2
            exit 1
        fi
        sleep 0.1
    done
}
await grep -q '^ready' "$log"
CONSOLE_URL=$(sed -n 's|^console  *\(http://[^ ]*\) .*|\1|p' "$log")
has_classes() { curl --silent --fail "$CONSOLE_URL/learn" | grep --quiet '/learn/classes/'; }
await has_classes
export CONSOLE_URL SCREENS=$screens
node "$here/tour.mjs"
