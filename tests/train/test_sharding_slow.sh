#!/usr/bin/env bash
# Sharding: every strategy on more ranks, in more ways than the quick test.
set -euo pipefail
"${LS_BUILD_DIR:?the build folder}/tests/train/test_sharding" all
