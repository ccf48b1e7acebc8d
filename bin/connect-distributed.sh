#!/usr/bin/env bash
# connect-distributed.sh as Kafka has it, from a checkout of sparkmirror. `pip install sparkmirror` brings it too.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
if [ ! -x "$root/.venv/bin/connect-distributed.sh" ]; then
    echo "Run 'make setup' in $root first." >&2
    exit 2
fi
exec "$root/.venv/bin/connect-distributed.sh" "$@"
