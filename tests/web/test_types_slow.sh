#!/usr/bin/env bash
# test_types_slow.sh: the script of reports keeps its types, strictly (web/tsconfig.json).
set -euo pipefail
cd "$(dirname "$0")/../.."
command -v tsc >/dev/null || { echo "skipped: tsc is not installed (node-typescript)"; exit 77; }
tsc -p web/tsconfig.json
echo "ok"
