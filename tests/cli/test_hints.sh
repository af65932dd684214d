#!/usr/bin/env bash
# What a newcomer types who knows other programs: options, commands and files that lead nowhere here must name what does
# it, with exit code 2 and nothing created.
set -uo pipefail
. "$(dirname "$(readlink -f "$0")")/cli_lib.sh"
cd "$work" || exit 1

# hint TEXT ARGUMENT...
hint() {
    local text=$1
    shift
    run 2 "$@"
    says err "$text"
}

# Settings as options.
hint 'no option "--lr"; settings are written without dashes: optimizer.lr=0.1' train mnist --lr 0.1
hint 'optimizer.lr=0.1' train mnist --lr=0.1
hint 'train.epochs=3' train mnist --epochs 3
hint 'batch.per_rank=128' train mnist --batch-size 128
hint 'batch.per_rank=VALUE' bench mnist --batch_size
hint 'seed=7' train mnist --seed 7
hint 'reproducible=true' train mnist --reproducible
hint 'write -n 4' train mnist --nproc-per-node 4
hint 'the option --device cuda' train mnist --gpus 2
hint 'the option --run-dir' train mnist --output-dir x
hint 'did you mean "--ranks"?' train mnist --rank 2
hint '"--profile" is an option of bench, not of train' train mnist --profile
hint '"--split" is an option of infer, not of eval' eval mnist --split val
hint 'kind=idx' data info --kind idx
hint 'GPUs are "cuda", one a rank (CUDA_VISIBLE_DEVICES says which); there are: cpu, cuda, ref' train mnist --device gpu:0 --dry-run
hint 'no device "cpuu"; there are: cpu, cuda, ref' plan mnist --device cpuu

# Commands.
hint 'did you mean "train"?' trian
hint '`lockstep train EXPERIMENT`' fit mnist
hint '`lockstep eval RUN`' evaluate
for absent in sweep ui; do hint 'not in this version' "$absent"; done
hint '`runs pause` is not in this version; `lockstep runs stop RUN`' runs pause x
hint '`lockstep runs stop RUN`' runs kill x
hint '`lockstep train --resume RUN`' runs resume x
hint 'train.init=RUN' runs fork x
hint 'not in this version' runs archive x
run 0 help train
says out 'Usage: lockstep train'
run 0 train --help
cp "$work/out" "$work/usage"
run 0 help train
cmp -s "$work/out" "$work/usage" || fail "help train and train --help differ"
run 0 help
says out 'Usage: lockstep COMMAND'
run 0 help settings
says out 'batch.per_rank'
hint 'did you mean "train"?' help trian

# Files of other programs: by name, and by content under any name.
hint 'safetensors' ckpt import model.pt
says err 'torch.load("model.pt"'
says err '"model.safetensors"'
printf 'PK\3\4abcdefgh' >weights
hint 'is a file of PyTorch' ckpt import weights to
hint 'is a file of ONNX' ckpt import net.onnx to
hint 'to which directory?' ckpt import tensors

# A dry run for a program is one object.
run 0 train mnist --dry-run --json seed=7 optimizer.lr=1e-3 train.validate_every=2ep reproducible=true
holds 'o["event"] == "dry_run"' 'o["settings"]["seed"] == 7' 'o["settings"]["optimizer.lr"] == 1e-3' \
    'o["settings"]["train.validate_every"] == "2ep"' 'o["settings"]["reproducible"] is True'
[ "$(wc -l <"$work/out")" -eq 1 ] || fail "more than one line: $(cat "$work/out")"

[ -z "$(ls -d runs to 2>/dev/null)" ] || fail "something was created"
[ "$failures" -eq 0 ] && echo "hints: $n checks, all as expected"
exit $((failures > 0))
