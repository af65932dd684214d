#!/usr/bin/env bash
# Training in stages: all cases.
set -euo pipefail
"${LS_BUILD_DIR:?the build folder}/tests/train/test_stages" all
