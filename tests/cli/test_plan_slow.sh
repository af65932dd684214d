#!/usr/bin/env bash
# test_plan_slow.sh: `lockstep plan`: its document as JSON, pictures, differences between plans, and what it refuses.
set -uo pipefail
. "$(dirname "$0")/cli_lib.sh"
needs_python

# -- the document: one line that holds together, the contract's line last
run 0 plan aae -n 2 model.points=32 batch.per_rank=4 --json
cp "$work/out" "$work/aae.json"
python3 - "$work/aae.json" <<'P' || fail "the document of aae does not hold together"
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
assert [o["event"] for o in lines] == ["document", "model", "plan"], [o["event"] for o in lines]
document, last = lines[0], lines[-1]
assert document["format"] == 1 and document["ranks"] == 2 and document["device"] == "cpu"
plan, = document["plans"]
assert plan["hash"] == last["plan_hash"] and plan["memory"] == last["planned_bytes"]
nodes, values = {n["id"]: n for n in plan["nodes"]}, {v["id"]: v for v in plan["values"]}
place = {n["id"]: i for i, n in enumerate(plan["nodes"])}
assert len(nodes) == len(plan["nodes"]) and len(values) == len(plan["values"])
for n in plan["nodes"]:
    assert n["queue"] in ("compute", "comm", "copy") and n["flops"] >= 0 and n["bytes"] >= 0
    assert all(v in values for v in n["inputs"] + n["outputs"])
    assert all(values[v]["node"] == n["id"] for v in n["outputs"])
edges = {(e["from"], e["to"]) for e in plan["edges"]}
assert all(place[a] < place[b] for a, b in edges)
for n in plan["nodes"]:
    for v in n["inputs"]:
        assert values[v]["node"] < 0 or (values[v]["node"], n["id"]) in edges
kinds = {e["kind"] for e in plan["edges"]}
assert kinds == {"value", "overwrite", "barrier", "commit", "turn"}, kinds
for v in plan["values"]:
    assert -1 <= v["buffer"] < len(plan["buffers"])
for b in plan["buffers"]:
    assert 0 <= b["first"] <= b["last"] < len(nodes), b
assert {b["home"] for b in plan["buffers"] if b["kind"] == "variable"} == {"rank", "machine"}
assert {b["kind"] for b in plan["buffers"]} == {"arena", "scratch", "variable", "exchange"}
buckets = [c for c in plan["collectives"] if c["kind"] == "all_reduce"]
barriers = [c for c in plan["collectives"] if c["kind"] == "barrier"]
assert [c["bytes"] for c in buckets] == last["buckets"] and len(barriers) >= 2
for c in plan["collectives"]:
    assert place[c["start"]] <= place[c["end"]] and all(place[i] < place[c["start"]] for i in c["waits_for"])
    assert c["kind"] == "barrier" or c["waits_for"]
P

# -- a step of several plans: gradients of a batch or a shard, and the update
n=$((n + 2))
for way in parallel.accumulate=2 reproducible=true; do
    run 0 plan aae -n 2 model.points=32 batch.per_rank=4 parallel.shards=4 $way --json
    python3 - "$work/out" "$way" <<'P' || fail "the plans of a step with $way do not hold together"
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
plans, last, shards = lines[0]["plans"], lines[-1], sys.argv[2] == "reproducible=true"
assert [(p["part"], p["stage"], p["runs_per_step"]) for p in plans] == [
    ("gradients", 0, 2), ("update", 0, 1), ("gradients", 1, 2), ("update", 1, 1)], plans
assert last["batch_per_rank"] == 4 and plans[0]["batch"] == (2 if shards else 4)
ops = [[n["op"] for n in p["nodes"]] for p in plans]
sums = [c["bytes"] for p in plans for c in p["collectives"] if c["kind"] == "all_reduce"]
assert sums == last["buckets"] and len(sums) >= 3
if shards:
    leaves = [o.count("all_reduce_leaf") for o in ops]
    starts = [o.count("all_reduce_start") for o in ops]
    assert leaves[0] == starts[1] > 0 and leaves[2] == starts[3] > 0 and leaves[1] == leaves[3] == 0
    assert not any("accumulate" in o for o in ops) and starts[0] == starts[2] == 0
else:
    assert "accumulate" in ops[0] and "accumulate" in ops[2] and ops[3].count("all_reduce_start") >= 2
P
done
# -- costs: those of a run, all plans together, also of variables that ranks keep once and of threads that have plans of their own
for way in "-n 2" "-n 1 parallel.accumulate=2" "-n 2 parallel.accumulate=2 parallel.share=always" "-n 1 --threads 2 reproducible=true" \
    "-n 2 --threads 1 reproducible=true"; do
    n=$((n + 1))
    # shellcheck disable=SC2086 # words
    run 0 plan mnist batch.per_rank=8 parallel.shards=4 $way --json
    cp "$work/out" "$work/plan.json"
    # shellcheck disable=SC2086
    run 0 bench mnist batch.per_rank=8 parallel.shards=4 $way --steps 1 --json
    python3 - "$work/plan.json" "$work/out" <<'P' || fail "$way: plan tells of other costs than a run has"
import json, sys
plan, bench = (json.loads(open(f).read().splitlines()[-1]) for f in sys.argv[1:])
for flops in "flops_per_sample", "all_flops_per_sample":
    assert abs(plan[flops] / bench[flops] - 1) < 1e-6, (flops, plan[flops], bench[flops])
assert plan["planned_bytes"]["total"] == bench["planned_bytes"] == bench["used_bytes"], (plan["planned_bytes"], bench["planned_bytes"], bench["used_bytes"])
P
done

# -- buckets: as many, as large and in the same order as a run says it exchanged them
for way in "mnist reproducible=true" "aae model.points=32" "aae model.points=32 parallel.accumulate=2" \
    "aae model.points=32 reproducible=true" "cosmogan model.size=16 model.width=2 parallel.accumulate=2 parallel.sync_batchnorm=true"; do
    n=$((n + 1))
    settings="$way -n 2 --threads 1 batch.per_rank=4 parallel.shards=4 parallel.bucket_mb=0.5 data.kind=synthetic
        data.train_range=0:16 data.test_range=16:18"
    # shellcheck disable=SC2086 # words
    run 0 plan $settings --json
    cp "$work/out" "$work/plan.json"
    # shellcheck disable=SC2086
    run 0 train $settings train.steps=1 train.validate_every=none train.checkpoint_every=none --run-dir "$work/run-$n" --json
    python3 - "$work/plan.json" "$work/out" <<'P' || fail "$way: plan lists other buckets than a run"
import json, sys
plan, run = (json.loads(open(f).read().splitlines()[-1]) for f in sys.argv[1:])
assert len(plan["buckets"]) > 1 and plan["buckets"] == run["comm"]["buckets"], (plan["buckets"], run["comm"]["buckets"])
P
done

run 0 plan mnist -n 2 reproducible=true
says out "gradients, "
says out "update"
says out " in 2 plans, batch "
run 1 plan --diff mnist parallel.accumulate=2
says out "A has 1 plan, B has 2"
says out "more edges, inputs or variables"

# -- what it says of several plans is what `bench` measures; nothing is exchanged on one rank
last_line() { # planned bytes and FLOPs of it
    python3 -c 'import json, sys
o = json.loads(sys.stdin.read().splitlines()[-1])
total = o["planned_bytes"]
print(total if isinstance(total, int) else total["total"], o["all_flops_per_sample"])' <"$work/out"
}
n=$((n + 2))
several='aae -n 2 --threads 1 model.points=16 model.sum_over=2 batch.per_rank=4 parallel.accumulate=2 parallel.share=always --json'
# shellcheck disable=SC2086 # settings are words
{
    run 0 plan $several
    planned=$(last_line)
    run 0 bench $several --steps 2 --seconds 0.1
}
[ "$planned" = "$(last_line)" ] || fail "bytes and FLOPs: plan says $planned, bench $(last_line)"
run 0 plan mnist reproducible=true --json
tail -n 1 "$work/out" | grep -q '"buckets":\[\]' || fail "buckets on one rank"

# -- the hash: not of devices, threads or ranks' numbers
hash_of() {
    run 0 plan "$@" --json
    python3 -c 'import json, sys; print(json.loads(sys.stdin.read().splitlines()[-1])["plan_hash"])' <"$work/out"
}
n=$((n + 3))
first=$(hash_of mnist)
[ "$first" = "$(hash_of mnist --device ref)" ] || fail "the hash depends on the device"
[ "$first" = "$(hash_of mnist --threads 2)" ] || fail "the hash depends on threads"
[ "$first" != "$(hash_of mnist optimizer.momentum=0.25)" ] || fail "another momentum has the same hash"

# -- how it was made
run 0 plan mnist -n 2 --passes
for pass in homes split differentiate parallel optimise dead fuse layout pieces versions schedule memory; do says out "$pass "; done
run 0 plan mnist --device ref --passes --json
python3 - "$work/out" <<'P' || fail "the passes of ref"
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
assert [o["event"] for o in lines] == ["document", "model", "passes", "plan"], [o["event"] for o in lines]
passes = lines[2]["passes"]
assert [p["pass"] for p in passes] == ["split", "precision", "differentiate", "optimise", "dead", "versions", "dead", "schedule", "(kernels)", "memory"], passes
assert all(p["nodes"] > 0 and p["edges"] >= 0 and p["seconds"] >= 0 for p in passes)
at = {p["pass"]: p for p in passes}
assert at["split"]["nodes"] < at["differentiate"]["nodes"], "differentiation adds no nodes"
assert at["memory"]["nodes"] >= len(lines[0]["plans"][0]["nodes"])
P

# -- pictures
run 0 plan mnist -n 2 --graph "$work/small.svg"
run 0 plan resnet18 -n 2 --graph "$work/large.svg"
n=$((n + 1))
python3 - "$work" <<'P' || fail "a picture is wrong"
import sys, xml.etree.ElementTree as tree
for name, least, most in ("small", 30, 60), ("large", 20, 320):
    root = tree.parse(f"{sys.argv[1]}/{name}.svg").getroot()
    ns = "{http://www.w3.org/2000/svg}"
    assert root.tag == ns + "svg"
    assert not list(root.iter(ns + "script")), "a script"
    blocks = [g for g in root.iter(ns + "g") if g.find(ns + "rect") is not None]
    assert least <= len(blocks) <= most, (name, len(blocks))
    width = float(root.get("width"))
    for r in root.iter(ns + "rect"):
        assert float(r.get("x", 0)) >= 0 and float(r.get("x", 0)) + float(r.get("width")) <= width + 0.01
    texts = " ".join(t.text or "" for t in root.iter(ns + "text"))
    assert "compute" in texts and "comm" in texts and "memory of one rank" in texts
P
run 0 plan "$work/aae.json" --graph "$work/again.svg"
run 0 plan aae -n 2 model.points=32 batch.per_rank=4 --graph "$work/aae.svg"
n=$((n + 1))
diff <(grep -c '<g><rect' "$work/again.svg") <(grep -c '<g><rect' "$work/aae.svg") || fail "a file is drawn as another plan"
run 2 plan "$work/aae.json"
says err "is a file with a plan"

# -- differences
run 0 plan --diff mnist mnist
says out "the plans are equal"
run 0 plan mnist -n 2 --json
cp "$work/out" "$work/mnist.json"
run 0 plan --diff "$work/mnist.json" mnist -n 2
run 1 plan --diff "$work/mnist.json" mnist
says out "all_reduce_start"
run 1 plan --diff mnist optimizer.momentum=0.9
says out "first difference: node"
says out "sgd of layer"
says out "momentum=0.9"
run 1 plan --diff mnist mnist-keras --json
n=$((n + 1))
python3 -c '
import json, sys
o = json.loads(sys.stdin.read())
assert o["event"] == "plan-diff" and not o["equal"] and o["added"] > 0 and o["removed"] > 0
assert "first difference" in o["text"] and o["plan_hash"][0] != o["plan_hash"][1]' <"$work/out" || fail "the JSON of --diff"

run 0 bench mnist -n 2 --threads 1 --steps 3 batch.per_rank=8 parallel.accumulate=2 --export "$work/two.json"
run 0 plan --diff "$work/two.json" "$work/two.json"
says out "gradients, stage 1: the plans are equal"
says out "update, stage 1: the plans are equal"
run 1 plan --diff "$work/two.json" "$work/mnist.json"
says out "A has 2 plans, B has 1"
run 2 plan --diff "$work/mnist.json" seed=3
says err "cannot be set in it"
run 2 plan --diff "$work/two.json" "$work/mnist.json" seed=3
says err "cannot be set in them"
for word in '-n 2' '--device ref' '--threads 1'; do
    # shellcheck disable=SC2086 # words
    run 2 plan --diff "$work/two.json" "$work/mnist.json" $word
    says err "compiled before: ${word% *} cannot be set in them"
done
run 2 plan --diff mnist -n 2 # no second side
says err "--diff takes two of"
run 3 plan --diff "$work/none.json" "$work/mnist.json"
says err "none.json: No such file"

# -- refusals
run 2 plan mnist --graph "$work/picture.png"
says err "should end in .svg"
[ ! -e "$work/picture.png" ] || fail "a refused picture was written"
run 2 plan mnist --graph "$work/none/picture.svg"
says err "none/picture.svg"
[ ! -s "$work/out" ] || fail "the table comes before it is known that the picture cannot be written: $(head -3 "$work/out")"
mkdir "$work/folder.svg"
run 2 plan mnist --graph "$work/folder.svg"
says err "folder.svg: Is a directory"
run 2 plan "$work/mnist.json" --graph "$work/none/picture.svg"
[ -z "$(find "$work" -name '*.partial')" ] || fail "something was left: $(find "$work" -name '*.partial')"
# Batch norms of the reproducible mode are of a shard: what wants them of all ranks is told.
for command in plan bench train; do
    run 2 $command mnist reproducible=true parallel.sync_batchnorm=true
    says err "set parallel.sync_batchnorm=false"
done
run 2 plan --diff mnist
says err "--diff takes two of"
run 2 plan --diff mnist mnist-keras vit
says err "one word too many"
run 2 plan --diff mnist mnist --graph "$work/x.svg"
says err "choose one"
run 2 plan --diff mnist mnits
says err "mnits"
echo '{"event":"plan"}' >"$work/other.json"
run 3 plan --diff "$work/other.json" mnist
says err "no plan is in it"
head -c 2000 "$work/mnist.json" >"$work/cut.json"
run 3 plan --diff mnist "$work/cut.json"
says err "cut.json"

# -- files that do not hold together: place, value, remedy
# spoilt CODE: mnist.json with one thing changed in its plan, p.
spoilt() {
    python3 - "$work/mnist.json" "$work/spoilt.json" "$1" <<'P'
import json, sys
o = next(x for x in map(json.loads, open(sys.argv[1])) if x["event"] == "document")
p = o["plans"][0]
exec(sys.argv[3])
json.dump(o, open(sys.argv[2], "w"))
P
    run 3 plan --diff "$work/spoilt.json" "$work/mnist.json"
    says err "spoilt.json: "
    says err "write the file anew"
}
spoilt 'p["buffers"][2]["offset"] = p["arena_bytes"]'
says err "buffer 2: its offset"
spoilt 'p["nodes"][5]["queue"] = "gpu"'
says err 'node 5: "queue" is "gpu", must be compute, comm, copy or host'
spoilt 'e = p["edges"][7]; e["from"], e["to"] = e["to"], e["from"]'
says err "edge 7: it leads from node"
spoilt 'p["nodes"][5]["layer"] = chr(27) + "[2J"'
says err 'u001B'

spoilt 'for c in p["collectives"]: c["bucket"] = 99999'
says err '"bucket" is 99999'
n=$((n + 1))
python3 - "$work/two.json" "$work/late.json" <<'P' || fail "two.json cannot be spoilt"
import json, sys
o = json.load(open(sys.argv[1]))
o["plans"][1]["nodes"][0]["queue"] = "gpu"
json.dump(o, open(sys.argv[2], "w"))
P
for form in "" --json; do # nothing is said of plan 1 before plan 2 is known to be good
    # shellcheck disable=SC2086 # none, or one word
    run 3 plan --diff "$work/two.json" "$work/late.json" $form
    says err "late.json: plan 2 of 2: node 0"
    [ ! -s "$work/out" ] || fail "said before all was read: $(head -c 300 "$work/out")"
done
mkfifo "$work/pipe.json"
for words in "--diff $work/pipe.json mnist" "--diff mnist $work/pipe.json" "$work/pipe.json --graph $work/pipe.svg"; do
    n=$((n + 1))
    # shellcheck disable=SC2086 # words of a command
    timeout 60 "$LOCKSTEP" plan $words >"$work/out" 2>"$work/err"
    [ $? -eq 2 ] || fail "plan $words: waits, or ends otherwise: $(cat "$work/err")"
    says err "pipe.json is a pipe or a device"
done

# -- what plan writes it also reads, whatever the device and the way of splitting
for way in "mnist -n 2 --device far" "aae -n 2 model.points=32 batch.per_rank=4 --device far" \
    "mnist -n 2 reproducible=true parallel.shards=4 --device far" "vit -n 2 parallel.accumulate=2" "aae -n 2 model.points=32 batch.per_rank=4 parallel.accumulate=2 parallel.share=never" \
    "cyclegan" "cosmogan"; do
    # shellcheck disable=SC2086 # words of a command
    run 0 plan $way --json
    cp "$work/out" "$work/way.json"
    run 0 plan --diff "$work/way.json" "$work/way.json"
done

echo "$n checks, $failures failed"
[ "$failures" -eq 0 ]
