#!/usr/bin/env bash
# gpu_checks.sh [OUTPUT]: everything on this machine's GPU that is either right or wrong, in one run of a few minutes:
#   ops         every op's cases on cuda against the reference (f32, bf16, f16, gradients), list by list
#   torch       steps of all networks against PyTorch in fp64, in fp32, tf32, bf16 and fp16
#   tests       tests of regions, tiles, chains, steps, transposes, errors, few channels, what is believed of libraries (tests/backend) and of whole trials (tests/cli/test_cuda_slow.sh)
#   memcheck, racecheck   compute-sanitizer over the lists of ops, the long ones in parts, and over three steps of every trial (the
#               second is recorded, the third replayed) and its test; with the libraries' own guesses (LOCKSTEP_TUNE=off)
# Everything runs side by side (JOBS, as many as cores); OUTPUT (a new folder) keeps what each said.  Exit status 1 and the names where
# something failed.  BUILD (build) names the folder of the build; PARTS ("ops torch tests memcheck racecheck") what is run; ONLY (a
# pattern of grep -E) which of its jobs; LIMIT (500; of the sanitizer 200) seconds for each; DRY=1 lists the jobs instead.
#
# racecheck looks at all kernels, also those of cuBLASLt and cuDNN: left out by name, they end with an error of the sanitizer's own where
# products have 16 bits.  A job in which it blames such kernels alone, by what they are called (THEIRS), is ok, and says so.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 2
build=$(readlink -f "${BUILD:-build}") out=$(readlink -f "${1:-$(mktemp -d)}") parts=${PARTS:-ops torch tests memcheck racecheck}
export LOCKSTEP=${LOCKSTEP:-$build/lockstep} LS_BUILD_DIR=$build LOCKSTEP_MODULES=$build LOCKSTEP_EXPERIMENTS=${LOCKSTEP_EXPERIMENTS:-$PWD/experiments}
export THEIRS=${THEIRS:-nvjet|xmma|cutlass|cudnn|cublas|convolve|[shd]gemm|gemv|winograd|nchwTo|nhwcTo|fft2d}
lists="conv:8 elementwise:8 fused:3 norm:3 matmul:3 shape:2 reduce:2 loss pool optim random softmax"
trials="mnist mnist-keras linear resnet18-cifar vit-tiny:model.depth=1 cosmogan:model.size=32,model.width=4
cyclegan:model.size=32,model.blocks=1,model.width=8 wgan-gp aae:model.points=64"
few="data.kind=synthetic data.train_range=0:6 data.test_range=6:8 batch.per_rank=2 train.steps=3 train.validate_every=none
train.checkpoint_every=none train.sample_every=none train.output_every=none"
sanitizer=$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)

# sanitize TOOL: how a job under it begins
sanitize() {
    echo "timeout ${LIMIT:-200} env LOCKSTEP_TUNE=off LS_TEST_DEVICE=cuda $sanitizer --tool $1 --error-exitcode 9"
}

# jobs_of_tool TOOL: lines of NAME COMMAND
jobs_of_tool() {
    local x n i trial settings
    for x in $lists; do
        n=${x#*:}
        [ "$n" != "$x" ] || n=1
        for ((i = 1; i <= n; i++)); do echo "$1-${x%:*}-$i $(sanitize "$1") $build/tests/ops/test_ops ${x%:*} $i/$n"; done
    done
    for trial in $trials; do
        settings=${trial#*:}
        [ "$settings" != "$trial" ] || settings=
        for x in fp32 bf16; do # not `bench`, which also measures what the machine can do
            echo "$1-${trial%%:*}-$x $(sanitize "$1") $LOCKSTEP train ${trial%%:*} --device cuda --quiet --run-dir $out/run-$1-${trial%%:*}-$x" \
                "${few//$'\n'/ } precision=$x ${settings//,/ }"
        done
    done
}

# jobs_of PART: lines of NAME COMMAND
jobs_of() {
    local x
    case $1 in
        ops) for x in $lists; do echo "ops-${x%:*} env LS_TEST_DEVICE=cuda $build/tests/ops/test_ops ${x%:*}"; done ;;
        torch)
            echo "torch-fp32 python3 tests/torch/compare_steps.py $build/tests/torch/torch_steps --device cuda"
            for x in tf32 bf16 fp16; do
                echo "torch-$x python3 tests/torch/compare_steps.py $build/tests/torch/torch_steps --device cuda --precision $x"
            done
            ;;
        tests)
            for x in regions_gpu_slow tiles_slow chain_slow steps_slow turns_slow errors probe; do echo "test-${x%_slow} $build/tests/backend/test_cuda_$x"; done
            echo "test-few bash tests/backend/test_cuda_few_slow.sh"
            echo "test-trials bash tests/cli/test_cuda_slow.sh"
            ;;
        memcheck | racecheck) jobs_of_tool "$1" ;;
        *) echo "gpu_checks.sh: PARTS: there is no $1" >&2 ;;
    esac
}

# blamed LOG: kernels that the sanitizer names, most often first
blamed() {
    grep -oE '^=========.* at [^+(]*' "$1" | sed -E 's/.* at (void )?//' | sort | uniq -c | sort -rn | head -3 | sed -E 's/^ *([0-9]+) (.*)/\2 x \1/' | paste -sd ';'
}

# theirs LOG: whether racecheck found hazards, and in libraries' kernels alone; any other error is nobody's but ours
theirs() {
    grep -q 'RACECHECK SUMMARY' "$1" && grep -qE '^=========.* at ' "$1" &&
        ! grep -E '^=========.* at ' "$1" | grep -qvE "at [^ ]*($THEIRS)" && ! grep -qE 'Internal Sanitizer|Target application returned|Program hit' "$1"
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
        77) echo "SKIPPED $name: $(grep -m 1 skipped "$to.log" | cut -c1-200)" ;;
        124) echo "FAILED  $name: not done in $((SECONDS - begin)) s; until then $(blamed "$to.log")" ;;
        9) theirs "$to.log" && echo "ok      $name ($((SECONDS - begin)) s; hazards in libraries' kernels alone: $(blamed "$to.log"))" ||
            echo "FAILED  $name ($((SECONDS - begin)) s): $(grep -m 1 SUMMARY "$to.log" | cut -c1-120); $(blamed "$to.log")" ;;
        *) echo "FAILED  $name: exit status $status: $(grep -m 1 -E 'FAILED|skipped|SUMMARY|rror' "$to.log" | cut -c1-200)" ;;
    esac
}
export -f one blamed theirs

all=$(for part in $parts; do jobs_of "$part"; done | grep -E "^[^ ]*(${ONLY:-})")
[ -n "$all" ] || { echo "gpu_checks.sh: no such job" >&2 && exit 2; }
[ -z "${DRY:-}" ] || { echo "$all" && exit; }
mkdir -p "$out"
begun=$SECONDS
xargs -P "${JOBS:-$(nproc)}" -d '\n' -n 1 bash -c 'one "$@"' one "$out" <<<"$all" | tee "$out/all"
echo "$(grep -c '^ok' "$out/all") ok, $(grep -c '^FAILED' "$out/all") failed, $(grep -c '^SKIPPED' "$out/all") skipped in $((SECONDS - begun)) s; what they said: $out"
! grep -q '^FAILED' "$out/all"
