#!/usr/bin/env bash
# The order of collectives in the plans of several batches: every trial under every strategy.
set -euo pipefail
exec "${LS_BUILD_DIR:?the build folder}/tests/train/test_turns" all
