#!/usr/bin/env bash
# All flows of config/mm2-config.properties in one container, without Compose.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
exec docker run --rm -it --hostname mm2-replicator --name mm2-replicator \
    --mount type=bind,source="$PWD"/config,target=/app/replicator/config/ \
    --mount type=bind,source="$PWD"/properties,target=/properties/ \
    --security-opt label=disable \
    flinox/mm2-replicator:latest
