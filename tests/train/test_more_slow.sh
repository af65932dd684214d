#!/usr/bin/env bash
# Replay pools, gathered outputs and the reproducible mode: the cases that the quick tests leave out.
set -euo pipefail
folder=${LS_BUILD_DIR:?the build folder}/tests/train
"$folder/test_replay" all
"$folder/test_gather_slow" all
"$folder/test_reproducible" long
