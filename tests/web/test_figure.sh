#!/usr/bin/env bash
# test_figure.sh: the pure functions of the pages' script, run by node.
set -euo pipefail
cd "$(dirname "$0")/../.."
for tool in node esbuild; do
    command -v $tool >/dev/null || { echo "skipped: $tool is not installed"; exit 77; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
esbuild web/figure.ts --format=esm --log-level=warning --outfile="$work/figure.mjs"
node tests/web/figure_test.mjs "$work/figure.mjs"
# Nothing is asked for over the network, and nobody else's code is in it.
! grep -nE 'fetch\(|XMLHttpRequest|WebSocket|importScripts|sendBeacon|eval\(' web/*.ts
! grep -nE "from ['\"][^.]" web/*.ts
! grep -noE '[a-z]+://[^"]*' web/*.ts | grep -v '://www.w3.org/2000/svg'
echo "ok"
