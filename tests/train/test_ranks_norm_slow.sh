#!/usr/bin/env bash
# Batch norm on several ranks: by statistics of all ranks, and to the same bits in the reproducible mode.
set -euo pipefail
folder=${LS_BUILD_DIR:?the build folder}/tests/train
"$folder/test_ranks" norm
"$folder/test_reproducible" norm
