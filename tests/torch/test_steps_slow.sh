#!/usr/bin/env bash
# Losses and weights of 3 to 5 steps against PyTorch, from the same initial weights, inputs and random draws.
# The published sizes take minutes each and are not part of this test:
#   /usr/bin/python3 tests/torch/compare_steps.py build/tests/torch/torch_steps --full [--fp32] [MODEL ...]
# (--fp32: also how far PyTorch in fp32 is from both)
set -eu
python=/usr/bin/python3
if ! "$python" -c 'import torch, numpy' 2>/dev/null; then
    echo "skipped: python3-torch is not installed (scripts/setup test installs it)"
    exit 77
fi
export OPENBLAS_CORETYPE=${OPENBLAS_CORETYPE:-} OMP_WAIT_POLICY=PASSIVE
exec "$python" tests/torch/compare_steps.py "$LS_BUILD_DIR/tests/torch/torch_steps"
