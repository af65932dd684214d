#!/usr/bin/env bash
# lockstep infer: every sample once and in order, on one rank and on two; classes counted; files replaced as a whole.
set -uo pipefail
. "$(dirname "$(readlink -f "$0")")/cli_lib.sh"
needs_python
enter_work
# rows FILE EXPRESSION...: over r, the rows of a CSV file as dicts of numbers
rows() {
    local file=$1
    shift
    n=$((n + $#))
    python3 - "$file" "$@" <<'P' || fail "$file: $*"
import csv, math, sys
r = [{k: float(v) for k, v in row.items()} for row in csv.DictReader(open(sys.argv[1]))]
wrong = [e for e in sys.argv[2:] if not eval(e)]
sys.exit(f"not true: {wrong} of {r[0]}" if wrong else 0)
P
}
# 37 samples: short last batches, of which a rank may have none.
run 0 train mnist data.kind=synthetic data.train_range=0:96 data.test_range=96:133 batch.per_rank=12 train.epochs=2 --quiet --run-dir a

run 0 infer a --out one.csv --json
holds 'o["event"] == "infer"' 'o["samples"] == 37' 'o["split"] == "test"' 'o["out"] == "one.csv"' 'o["outputs"] == {"score": 10}' \
    'o["classification"]["samples"] == 37' 'abs(o["classification"]["accuracy"] - o["acc"]) < 1e-6' \
    'sum(map(sum, o["classification"]["matrix"])) == 37' \
    'all(sum(row) == c["samples"] and row[c["class"]] == c["right"] for row, c in zip(o["classification"]["matrix"], o["classification"]["per_class"]))'
accuracy=$(field acc)
rows one.csv '[x["sample"] for x in r] == list(range(37))' "abs(sum(x['label'] == x['predicted'] for x in r) / 37 - $accuracy) < 1e-6" \
    'all(max(range(10), key=lambda k: x[f"score_{k}"]) == x["predicted"] for x in r)' 'len(r[0]) == 13'
run 0 eval a --json
is acc "$accuracy"

for how in "-n 2" "-n 2 reproducible=true" "batch.per_rank=5" "-n 3 batch.per_rank=16" "data.workers=2"; do
    # shellcheck disable=SC2086
    run 0 infer a --out two.csv --json $how
    is samples 37
    cmp -s <(cut -d, -f1-3 one.csv) <(cut -d, -f1-3 two.csv) || fail "$how: other samples, order or answers"
done
run 0 infer a --out fixed1.csv reproducible=true
run 0 infer a --out fixed2.csv reproducible=true -n 2
cmp -s fixed1.csv fixed2.csv || fail "reproducible=true: outputs of two ranks have other bits than those of one"

# Probabilities, and arrays.
run 0 infer a --out p.csv --probabilities
rows p.csv 'all(abs(sum(x[f"probability_{k}"] for k in range(10)) - 1) < 1e-6 for x in r)'
run 0 infer a --out one.npy
python3 - <<'P' || fail "one.npy is not what one.csv says"
import csv, struct, sys
raw = open("one.npy", "rb").read()
assert b"'shape': (37, 10)" in raw[:128] and b"'<f4'" in raw[:128], raw[:128]
n = struct.unpack("<H", raw[8:10])[0]
values = struct.unpack("<370f", raw[10 + n:])
r = [float(v) for row in csv.reader(open("one.csv")) if row[0] != "sample" for v in row[3:]]
assert max(abs(a - b) for a, b in zip(r, values)) < 1e-6
P

# For people: classes and matrix; in the report, too.
run 0 infer a
says out 'taken for most often'
says out 'is \ taken for'
run 0 report a
grep -q 'Classes: ' a/report/report.html || fail "the report has no section about classes"
[ -s a/report/classes-1.csv ] && [ -s a/report/confusion-1.csv ] || fail "the report has no tables of classes"
# Rows are what samples are, columns what they are taken for, as counted from the samples themselves; everywhere.
run 0 infer a
python3 - "$work/out" <<'P' || fail "the matrix is another than that of one.csv: $(cat "$work/out" a/report/confusion-1.csv)"
import csv, json, sys
want = [[0] * 10 for _ in range(10)]
for row in csv.DictReader(open("one.csv")):
    want[int(row["label"])][int(row["predicted"])] += 1
assert want != [list(column) for column in zip(*want)], "either way the same: this shows nothing"
assert json.load(open("a/confusion.json"))["matrix"] == want, "confusion.json"
page = [[int(v) for v in row[1:]] for row in list(csv.reader(open("a/report/confusion-1.csv")))[1:]]
assert page == want, page
lines = open(sys.argv[1]).read().splitlines()
first = next(i for i, line in enumerate(lines) if line.startswith("is \\ taken for")) + 2
shown = [[int(v) if v != "." else 0 for v in line.split()[1:]] for line in lines[first:first + 10]]
assert shown == want, shown
P
python3 -c '
import json
o = json.load(open("a/confusion.json"))
assert o["weights"] == "best" and o["step"] == 16 and o["samples"] == 37, o' || fail "a/confusion.json"
echo '{"per_class": 7}' >a/confusion.json
run 0 report a
grep -q 'cannot be read as counts of classes' a/report/report.html || fail "a damaged confusion.json goes unsaid"

# Classes have names where the data set has them.
run 0 data make kind=images path=images train=40 test=20 classes=3 shape=3x28x28
run 0 train mnist data.kind=images data.channels=1 data.path=images batch.per_rank=8 train.steps=2 --quiet --run-dir named
run 0 infer named --json
holds 'len(o["classification"]["classes"]) == 3' 'o["classification"]["per_class"][1]["name"] == o["classification"]["classes"][1]'
run 0 infer named
says out "$(ls images/train | sed -n 2p)"

# A file of weights; a model whose outputs are no classes; one that has none.
run 0 ckpt export a a.safetensors
run 0 infer a.safetensors --experiment mnist data.kind=synthetic data.test_range=96:133 batch.per_rank=12 --out file.csv --json
cmp -s one.csv file.csv || fail "a file of weights gives other outputs than its run"
aae=(data.kind=synthetic model.points=64 batch.per_rank=4 data.train_range=0:16 data.test_range=16:27)
run 0 train aae "${aae[@]}" train.steps=1 --quiet --run-dir aae
run 0 infer aae --out aae.csv --json
holds '"classification" not in o' 'o["outputs"]["embeddings"] > 1'
rows aae.csv 'len(r) == 11' '"embeddings_0" in r[0]' '"label" not in r[0]'
run 0 infer aae --out aae.npy --output embeddings -n 2
run 2 infer aae --output nothing
says err 'has no output "nothing"; it has: embeddings'
run 0 train cosmogan data.kind=synthetic data.train_range=0:8 data.test_range=8:12 batch.per_rank=4 train.steps=1 train.sample_every=none \
    --quiet --run-dir gan
run 2 infer gan
says err 'declares no outputs per sample'

# Data without labels: the same answers, and no word about their accuracy.
for kind in npy idx; do
    run 0 data make kind=$kind path=$kind train=24 test=17
    set=(data.kind=$kind data.path=$kind data.train_range=0:24 data.test_range=0:17)
    run 0 infer a "${set[@]}" --out labelled.csv --json
    holds 'o["labels"]' '"classification" in o' '"acc" in o'
    rm $kind/t*-labels*
    for how in "" "-n 2" "reproducible=true"; do
        # shellcheck disable=SC2086
        run 0 infer a "${set[@]}" --out bare.csv --json $how
        holds 'o["samples"] == 17' 'o["labels"] is False' '"classification" not in o' '"acc" not in o' '"loss" not in o' 'o["outputs"] == {"score": 10}'
        n=$((n + 1))
        cmp -s <(cut -d, -f1,3 labelled.csv) <(cut -d, -f1,2 bare.csv) || fail "$kind $how: other answers: $(head -2 bare.csv)"
    done
    rows bare.csv 'len(r[0]) == 12' '"label" not in r[0]'
    run 0 infer a "${set[@]}"
    says out "labels        none in the data: no accuracy is computed"
    n=$((n + 1))
    grep -q "acc\|loss" <(grep -v labels "$work/out") && fail "metrics without labels: $(cat "$work/out")"
done
run 2 eval a data.kind=npy data.path=npy data.train_range=0:24 data.test_range=0:17
says err 'input "label" is not in the data set'

# What cannot be written is refused before anything is computed; what was there stays.
run 2 infer a --out nowhere/o.csv
says err 'nowhere/'
run 2 infer a --out o.txt
says err 'must end in .csv or .npy'
run 2 infer a --split all
says err 'there are train, val and test'
mkdir folder.csv
run 2 infer a --out folder.csv
says err 'is a folder'
echo before >kept.csv
truncate -s 3000 a.safetensors
run 3 infer a.safetensors --experiment mnist data.kind=synthetic --out kept.csv
[ "$(cat kept.csv)" = before ] || fail "a failed inference changes the file that was there"
[ -z "$(find . -name '*.partial')" ] || fail "files are left beside: $(find . -name '*.partial')"

[ $failures -eq 0 ] && echo "test_infer: $n checks passed"
exit $((failures > 0))
