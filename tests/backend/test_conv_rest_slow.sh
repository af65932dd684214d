#!/usr/bin/env bash
# Convolutions: the cases that the quick test leaves out.
set -euo pipefail
"${LS_BUILD_DIR:?the build folder}/tests/backend/test_conv_impls" rest
