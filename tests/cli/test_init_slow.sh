#!/usr/bin/env bash
# Runs that start from given weights: a run, a checkpoint, a file of another program; with a new head; on several
# ranks; what does not fit is listed, and nothing is created.
set -uo pipefail
. "$(dirname "$(readlink -f "$0")")/cli_lib.sh"
needs_python
enter_work
common=(data.kind=synthetic data.train_range=0:64 data.test_range=64:96 batch.per_rank=16 --quiet)
still=(train.steps=1 optimizer.lr=0 "${common[@]}") # ends with the weights that it began with

run 0 train mnist train.steps=4 "${common[@]}" --run-dir a
run 0 ckpt export a a.safetensors

# Wherever they come from, they are the same.
run 0 train mnist "${still[@]}" train.init=a --run-dir from-run
run 0 train mnist "${still[@]}" train.init=a/checkpoints/last --run-dir from-ckpt
run 0 train mnist "${still[@]}" train.init=a.safetensors --run-dir from-file
run 0 train mnist "${still[@]}" train.init=a.safetensors -n 2 batch.per_rank=8 parallel.share=always --run-dir shared
run 0 train mnist "${still[@]}" train.init=a.safetensors reproducible=true --run-dir reproducible
run 0 train mnist "${still[@]}" --run-dir fresh
tensors change a.safetensors f64.safetensors dtype=F64 prefix=module. counter=module.bn1.num_batches_tracked
run 0 train mnist "${still[@]}" train.init=f64.safetensors --run-dir f64
for r in from-run from-ckpt from-file shared reproducible f64; do
    [ "$(hash $r)" = "$(hash a)" ] || fail "$r does not begin with the given weights"
done
[ "$(hash fresh)" != "$(hash a)" ] || fail "weights that were never trained are those of the trained run"
python3 -c '
import json, os
o = json.load(open("from-file/summary.json"))["init"]
assert o["path"] == os.path.realpath("a.safetensors") and o["loaded"] == 8 and o["kept"] == 0, o
assert len(o["xxh3"]) == 16, o
p = json.load(open("from-run/summary.json"))["init"]["path"]
assert p == os.path.realpath("a/checkpoints/last"), p' || fail "summary.json does not say what was loaded"
grep -q "init: \"$work/a.safetensors\"" from-file/config.yaml || fail "config.yaml does not say what was loaded"

# The file inside a checkpoint: what the optimiser keeps there is passed over, whichever one there is now.
run 0 train mnist train.steps=4 optimizer.momentum=0.9 "${common[@]}" --run-dir momentum
own=momentum/checkpoints/last/model.safetensors
run 0 train mnist "${still[@]}" train.init=$own optimizer.name=adam --run-dir to-adam
[ "$(hash to-adam)" = "$(hash momentum)" ] || fail "to-adam does not begin with the given weights"
run 0 train mnist "${still[@]}" train.init=to-adam/checkpoints/last/model.safetensors "train.freeze=conv*" --run-dir frozen
[ "$(hash frozen)" = "$(hash momentum)" ] || fail "frozen does not begin with the given weights"
run 0 eval $own --experiment mnist data.kind=synthetic data.test_range=64:96 optimizer.name=adam
# ... and so is the loss scale of fp16, with what belongs to it.
run 0 train mnist train.steps=2 precision=fp16 "${common[@]}" --run-dir fp16
run 0 train mnist "${still[@]}" train.init=fp16/checkpoints/last/model.safetensors --run-dir from-fp16
[ "$(hash from-fp16)" = "$(hash fp16)" ] || fail "from-fp16 does not begin with the given weights"
run 0 eval fp16/checkpoints/last/model.safetensors --experiment mnist data.kind=synthetic data.test_range=64:96

# A loss that is no number is shown as none.
python3 -c '
import json, struct
b = bytearray(open("a.safetensors", "rb").read())
n = struct.unpack("<Q", b[:8])[0]
first, last = json.loads(b[8:8 + n])["fc2.bias"]["data_offsets"]
b[8 + n + first:8 + n + last] = bytes([0, 0, 0xc0, 0x7f]) * ((last - first) // 4)
open("nan.safetensors", "wb").write(b)'
run 0 eval nan.safetensors model.trial=mnist data.kind=synthetic data.test_range=64:96
grep -Eq '^loss +nan$' out || fail "a loss of NaN is not shown: $(cat out)"

# Narrow numbers are widened, exactly.
for t in F16 BF16; do
    tensors change a.safetensors $t.safetensors dtype=$t
    run 0 eval $t.safetensors model.trial=mnist data.kind=synthetic data.test_range=64:96 --json
    holds 'o["samples"] == 32' 'abs(o["loss"] - 2.3) < 0.3'
done

# A new head: two variables keep what they would have had.
run 0 train mnist "${still[@]}" train.init=a "train.init_skip=fc2.*" --run-dir head
run 0 ckpt export head head.safetensors
run 0 ckpt export fresh fresh.safetensors
tensors same head.safetensors fresh.safetensors 'fc2.*'
tensors same head.safetensors a.safetensors 'conv?.*'
tensors same head.safetensors a.safetensors 'fc1.*'

# What does not fit is listed, with the ways out; nothing is created.
tensors change a.safetensors odd.safetensors 'drop=fc1.*' add=head.weight
run 2 train mnist "${common[@]}" train.init=odd.safetensors --run-dir odd
says err 'odd.safetensors: is not of this model: 2 missing: "fc1.weight", "fc1.bias"; 1 beyond the model'"'"'s: "head.weight"'
says err 'train.init_skip=PATTERN'
says err 'train.init_strict=false'
run 2 train mnist "${common[@]}" train.init=odd.safetensors -n 2 batch.per_rank=8 --run-dir odd
run 2 train mnist-keras "${common[@]}" train.init=a --run-dir odd
says err '"conv1.weight" f32 (10, 1, 5, 5) instead of f32 (32, 1, 3, 3)'
says err 'and 1 more'
run 2 train mnist "${common[@]}" train.init=a "train.init_skip=fc3.*" --run-dir odd
says err 'nothing matches "fc3.*"; there are "fc1.weight"'
run 2 train mnist "${common[@]}" train.init=nowhere --run-dir odd
says err "train.init: $work/nowhere: there is no such run, checkpoint or safetensors file"
run 2 train mnist "${common[@]}" train.init=. --run-dir odd
says err 'is neither a checkpoint nor a run'
run 2 train mnist "${common[@]}" train.init_strict=false --run-dir odd
says err 'mean nothing without train.init'
head -c 400 a.safetensors >cut.safetensors
run 3 train mnist "${common[@]}" train.init=cut.safetensors --run-dir odd
says err 'cut.safetensors'
[ ! -e odd ] || fail "a run that was refused has a directory"
run 0 train mnist "${still[@]}" train.init=odd.safetensors train.init_strict=false --run-dir lenient
says err "warning: train.init: $work/odd.safetensors: 2 missing: \"fc1.weight\", \"fc1.bias\""
run 0 ckpt export lenient lenient.safetensors
tensors same lenient.safetensors fresh.safetensors 'fc1.*'
tensors same lenient.safetensors a.safetensors 'fc2.*'

# It is where a run begins, not where it goes on: the file may be gone by then.
cp a.safetensors gone.safetensors
run 0 train mnist "${common[@]}" train.steps=6 train.init=gone.safetensors --run-dir whole
run 75 train mnist "${common[@]}" train.steps=6 train.init=gone.safetensors train.pause_after=3st --run-dir paused
rm gone.safetensors
run 0 train mnist "${common[@]}" train.steps=6 train.init=gone.safetensors --resume=paused
[ "$(hash paused)" = "$(hash whole)" ] || fail "a resumed run applies train.init again, or lost it"
grep -q '"init": {' paused/summary.json || fail "a resumed run forgets what it began with"

# eval of a file: what is missing is said.
run 0 eval a --json
want=$(field loss)
run 0 eval a.safetensors model.trial=mnist data.kind=synthetic data.test_range=64:96 batch.per_rank=16 data.normalise=mnist --json
is loss "$want"
run 0 eval a.safetensors --experiment mnist data.kind=synthetic data.test_range=64:96 -n 2 --json
holds 'o["samples"] == 32' "abs(o['loss'] - $want) < 1e-5"
run 2 eval a.safetensors
says err 'of which model?  Add --experiment NAME, or model.trial=NAME'
run 2 eval a.safetensors model.trial=mnist
says err 'on which data?  Add data.kind='
# A checkpoint that no run has made knows as little.
run 0 ckpt import a.safetensors imported
run 0 eval imported --experiment a/config.yaml --json
is loss "$want"
run 0 eval imported model.trial=mnist data.kind=synthetic data.test_range=64:96 batch.per_rank=16 data.normalise=mnist --json
is loss "$want"
run 2 eval imported
says err 'of which model?  Add --experiment NAME, or model.trial=NAME'
run 2 eval odd.safetensors model.trial=mnist data.kind=synthetic
says err '2 missing'
run 2 eval nowhere
says err 'there is no such run, checkpoint or file of weights'

[ $failures -eq 0 ] && echo "test_init: $n checks passed"
exit $((failures > 0))
