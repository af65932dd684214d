#!/usr/bin/env bash
# Weights from PyTorch give its outputs, and train as there with a new head and frozen layers.
set -eu
python=/usr/bin/python3
if ! "$python" -c 'import torch, numpy' 2>/dev/null; then
    echo "skipped: python3-torch is not installed (scripts/setup test installs it)"
    exit 77
fi
export OPENBLAS_CORETYPE=${OPENBLAS_CORETYPE:-} OMP_WAIT_POLICY=PASSIVE OMP_NUM_THREADS=1 LOCKSTEP_TUNE=off
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$python" tests/torch/compare_weights.py "$LOCKSTEP" "$work"
