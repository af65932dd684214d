#!/usr/bin/env bash
# bench --collectives: exchanges of two ranks by themselves: the table, the lines of JSON, the file, and what is refused.
set -uo pipefail
. "$(dirname "$0")/cli_lib.sh"
enter_work

run 0 bench --collectives -n 2 --sizes 1KiB,64KiB,1MiB --steps 5
for part in "2 ranks on 1 machine, 5 rounds" all_reduce reduce_scatter all_gather "1.00 KiB" "64.0 KiB" "1.00 MiB" core; do says out "$part"; done
grep -q bf16 out && fail "one machine converts nothing: $(grep bf16 out)"

run 0 bench --collectives -n 2 --sizes 1KiB,64KiB,4MiB --steps 7 --json --export file.json
cp out lines
if $have_json; then
    n=$((n + 1))
    python3 - lines file.json <<'END' || fail "the lines of --collectives --json"
import json, sys
lines, file = ([json.loads(l) for l in open(p)] for p in sys.argv[1:3])
assert lines == file, "--json and --export differ"
assert [(o["bytes"], o["kind"]) for o in lines] == [(b, k) for b in (1024, 65536, 4 << 20)
                                                    for k in ("all_reduce", "reduce_scatter", "all_gather")]
for o in lines:
    assert o["event"] == "collectives" and o["format"] == 1 and o["wire"] == "f32"
    assert o["ranks"] == 2 and o["hosts"] == 1 and o["most_ranks_of_host"] == 2 and o["rounds"] == 7
    assert o["wire_bytes"] == o["bytes"] and o["sent_bytes"] == 0 and 1 <= o["repeats"] <= 50
    s = o["seconds"]
    assert 0 < s["p16"] <= s["p50"] <= s["p84"]
    assert len(o["rank_core_s"]) == 2 and abs(sum(o["rank_core_s"]) / 2 - o["core_s"]) < 1e-9
    assert o["version"] and o["host"] and o["time"] > 1e9 and o["cores"] >= 1
END
fi

# By the clock: at least five rounds.
run 0 bench --collectives -n 2 --sizes 1KiB --seconds 0.01 --json
holds 'o["ranks"] == 2 and 5 <= o["rounds"] <= 101'

refused() {
    local text=$1
    shift
    run 2 bench --collectives "$@"
    says err "$text"
}
refused "one rank exchanges nothing"
refused 'leave "mnist" out' mnist -n 2
refused 'leave "batch.per_rank=3" out' batch.per_rank=3 -n 2
refused 'leave "--profile" out' -n 2 --profile
refused 'leave "--device" out' -n 2 --device cpu
refused "is not larger than what comes before it" -n 2 --sizes 4KiB,4KiB
refused "vectors have whole floats" -n 2 --sizes 5
refused "expected sizes such as 4KiB,1MiB" -n 2 --sizes 4KiB,,1MiB
refused "--sizes" -n 2 --sizes much
refused "the file cannot be written" -n 2 --export "$work/none/file.json"
refused "at most 1001 rounds" -n 2 --steps 1002
run 2 bench mnist --sizes 4KiB
says err "Add --collectives"

echo "$n checks, $failures failed"
[ "$failures" -eq 0 ]
