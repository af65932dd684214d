#!/usr/bin/env bash
# gpu_checks.sh [OUTPUT]: everything on this machine's GPU that is either right or wrong, in one run of a few minutes:
#   ops         every op's cases on cuda against the reference (f32, bf16, f16, gradients), list by list
#   torch       steps of all networks against PyTorch in fp64, in fp32, tf32, bf16 and fp16
#   tests       tests of regions, tiles, chains, steps, few channels (tests/backend) and of whole trials (tests/cli/test_cuda_slow.sh)
#   memcheck, racecheck   compute-sanitizer over the lists of ops, and over two steps of every trial (the second is recorded)
# Everything runs side by side (JOBS, as many as cores); OUTPUT (a new folder) keeps what each said.  Exit status 1 and the names where
# something failed.  BUILD (build) names the folder of the build; PARTS ("ops torch tests memcheck racecheck") what is run; LIMIT (500)
# seconds for each.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 2
build=$(readlink -f "${BUILD:-build}") out=${1:-$(mktemp -d)} parts=${PARTS:-ops torch tests memcheck racecheck}
export LOCKSTEP=${LOCKSTEP:-$build/lockstep} LS_BUILD_DIR=$build LOCKSTEP_MODULES=$build LOCKSTEP_EXPERIMENTS=${LOCKSTEP_EXPERIMENTS:-$PWD/experiments}
mkdir -p "$out"
lists="conv elementwise fused loss matmul norm optim pool random reduce shape softmax"
trials="mnist mnist-keras linear resnet18-cifar:batch.per_rank=2 vit-tiny:model.depth=1 cosmogan:model.size=32,model.width=4
cyclegan:model.size=32,model.blocks=1,model.width=8 wgan-gp aae:model.points=64"
sanitizer=$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)

# jobs_of PART: lines of NAME COMMAND
jobs_of() {
    local x settings trial
    case $1 in
        ops) for x in $lists; do echo "ops-$x env LS_TEST_DEVICE=cuda $build/tests/ops/test_ops $x"; done ;;
        torch)
            echo "torch-fp32 python3 tests/torch/compare_steps.py $build/tests/torch/torch_steps --device cuda"
            for x in tf32 bf16 fp16; do
                echo "torch-$x python3 tests/torch/compare_steps.py $build/tests/torch/torch_steps --device cuda --precision $x"
            done
            ;;
        tests)
            for x in regions tiles chain steps; do echo "test-$x $build/tests/backend/test_cuda_${x}_slow"; done
            echo "test-few bash tests/backend/test_cuda_few_slow.sh"
            echo "test-trials bash tests/cli/test_cuda_slow.sh"
            ;;
        *check)
            for x in $lists; do
                echo "$1-$x env LOCKSTEP_TUNE=off LS_TEST_DEVICE=cuda $sanitizer --tool $1 --error-exitcode 9 $build/tests/ops/test_ops $x"
            done
            for trial in $trials; do
                settings=${trial#*:}
                [ "$settings" != "$trial" ] || settings=
                for x in fp32 bf16; do
                    echo "$1-${trial%%:*}-$x env LOCKSTEP_TUNE=off $sanitizer --tool $1 --error-exitcode 9 $LOCKSTEP bench ${trial%%:*} --device cuda --steps 2" \
                        "precision=$x batch.per_rank=2 ${settings//,/ }"
                done
            done
            ;;
    esac
}

# one OUTPUT "NAME COMMAND...": runs it, and says how it ended
one() {
    local words name to status begin=$SECONDS
    read -ra words <<<"$2"
    name=${words[0]} to=$1/${words[0]}
    timeout "${LIMIT:-500}" "${words[@]:1}" >"$to.log" 2>&1
    status=$?
    case $status in
        0) echo "ok      $name ($((SECONDS - begin)) s)" ;;
        *) echo "FAILED  $name: exit status $status: $(grep -m 1 -E 'FAILED|skipped|SUMMARY|rror' "$to.log" | cut -c1-200)" ;;
    esac
}
export -f one

for part in $parts; do jobs_of "$part"; done |
    xargs -P "${JOBS:-$(nproc)}" -d '\n' -n 1 bash -c 'one "$@"' one "$out" | tee "$out/all"
! grep -q '^FAILED' "$out/all"
