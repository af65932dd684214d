#!/usr/bin/env bash
# gpu_switches.sh NETWORK [OPTION...]: where a GPU's steps part from PyTorch's: the cases of tests/torch/compare_steps.py of
# that network on cuda, as they are, and with one of the backend's switches off at a time (docs/gpu.md lists them).  A case that
# fails as it is, and not without clusters, has its fault there.
# OPTIONs go to compare_steps.py (--precision bf16, --full).  BUILD (build) names the folder of the build, PYTHON (python3) the
# Python that has PyTorch.  Exit status 1 where the cases fail with every switch as it is.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 2
[ $# -ge 1 ] || { sed -n '2,7s/^# \{0,1\}//p' "$0"; exit 2; }
build=$(readlink -f "${BUILD:-build}")
export LOCKSTEP_MODULES=$build

# compare NAME [VARIABLE=VALUE]: what the cases say, after the name
compare() {
    local name=$1
    shift
    env "$@" "${PYTHON:-python3}" tests/torch/compare_steps.py "$build/tests/torch/torch_steps" --device cuda "${cases[@]}" 2>&1 |
        sed "s/^/$name: /"
    return "${PIPESTATUS[0]}"
}

cases=("$@")
compare "as it is"
status=$?
for switch in GRAPH=off BRANCHES=off EARLY=off COPIES=alone CLEARS=theirs LAYOUT=plain CLUSTERS=off NORM_POOL=off SLIM=off COMPILE=off REGIONS=off; do
    compare "$switch" "LOCKSTEP_CUDA_$switch"
done
compare TUNE=off LOCKSTEP_TUNE=off
exit $status
