#!/usr/bin/env bash
# Replay pools and the reproducible mode: the cases that the quick tests leave out.
set -euo pipefail
folder=${LS_BUILD_DIR:?the build folder}/tests/train
"$folder/test_replay" rest
"$folder/test_reproducible" more
