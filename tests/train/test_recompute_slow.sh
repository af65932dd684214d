#!/usr/bin/env bash
# Activations that are computed again: all trials, also in bf16 and on a device with memory of its own.
set -euo pipefail
"${LS_BUILD_DIR:?the build folder}/tests/train/test_recompute" all
