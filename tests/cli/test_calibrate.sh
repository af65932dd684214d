#!/usr/bin/env bash
# predict --calibrate from files, what it refuses, and the script of a job.
set -uo pipefail
. "$(dirname "$0")/cli_lib.sh"
enter_work

run 0 bench --collectives -n 2 --sizes 1KiB,64KiB,1MiB --steps 5 --export two.json
run 0 predict --calibrate two.json
for part in "from 9 times of exchanges, of up to 2 ranks on 1 machine" inside "node        not known" "only 2 ranks were measured" \
    "machine       not measured" "written       calibration.json"; do says out "$part"; done
run 0 predict --calibrate --json --out other.json two.json
is event calibration file other.json has_network True has_machine False calibration.format lockstep-calibration calibration.version 1 \
    calibration.network.format lockstep-network calibration.network.measured_ranks 2 calibration.network.measured_nodes 1
holds 'len(o["not_known"]) >= 2 and o["calibration"]["network"]["inside"]["bytes_s"] > 0' '"machine" not in o["calibration"]' \
    'o["calibration"]["network"]["sources"]["node.bytes_s"].startswith("not measured")'
cmp -s calibration.json other.json || fail "two calibrations from the same files differ"

# A link that times were made from is found: 20 us and 1 GB/s between machines, at 2 and 4 of them.
if $have_json; then
    python3 - >made.jsonl <<'END'
import json
for hosts in (2, 4):
    for k in range(9):
        n = 1024 * 4 ** k
        slices = -(-n // 65536) if n < 65536 * 2 * hosts else 0
        if slices:  # short vectors have fewer slices than machines: leave their odd homes out
            continue
        s = 2 * 20e-6 + 2 * n * (hosts - 1) / hosts / 1e9
        print(json.dumps(dict(event="collectives", format=1, kind="all_reduce", wire="f32", bytes=n, ranks=hosts, hosts=hosts,
                              most_ranks_of_host=1, rounds=21, repeats=1, seconds=dict(p16=s, p50=s, p84=s), core_s=0, sent_bytes=0)))
END
    run 0 predict --calibrate --json --out made.json made.jsonl
    holds 'abs(o["calibration"]["network"]["node"]["bytes_s"] / 1e9 - 1) < 0.05' 'o["network_error"] < 0.05' \
        'o["calibration"]["network"]["measured_nodes"] == 4' 'any("inside" in x for x in o["not_known"])'
fi

refused() {
    local text=$1
    shift
    rm -f none.json
    run 2 predict --calibrate --out none.json "$@"
    says err "$text"
    [ ! -e none.json ] || fail "refused, but written: $*"
}
printf '{"event": "something"}\n' >odd.json
head -c 100 two.json >torn.json
sed 's/"rounds":5/"rounds":0/' two.json >wrong.json
refused "odd.json: has neither exchanges" two.json odd.json
refused "torn.json: line 1: no JSON" torn.json
refused 'wrong.json: line 1: "rounds" is missing' wrong.json
refused "gone.json" gone.json
: >empty.json
refused "empty.json: has neither exchanges" empty.json
printf '{"event": "bench-export", "format": 2}\n' >export.json
refused "export.json" export.json
refused "expected counts such as 1,2,4" --ranks 1,x
refused "is not more than what comes before it" --ranks 2,1
refused "one rank exchanges nothing" --ranks 1
refused "of which experiment?" --batches 8
refused "of which experiment?" two.json batch.per_rank=8
refused "one word too many" mnist linear
refused 'did you mean "mnist"' mnits
refused "--nodes 1,2" --nodes 1,2
run 2 predict --calibrate --slurm
says err "a job of what size?"
refused "--ranks says how many ranks of each machine" --ranks-per-node 2
# What a form does not take is refused with the form's name.
refused "--strategy is for predictions, and not for --calibrate; parallel.strategy=NAME" mnist --strategy fsdp
refused "parallel.strategy=NAME" two.json --strategy ddp
for option in "--machine edison" "--network edison" "--measured two.json" "--algorithm ring" "--placement random" "--engine closed" "--csv" "--memory 1GiB"; do
    # shellcheck disable=SC2086 # an option and its value
    refused "${option%% *} is for predictions, and not for --calibrate" mnist $option
done
for option in "--nodes 2" "--threads 2" "--sizes 1KiB" "--steps 3" "--batches 8" "--insecure"; do
    # shellcheck disable=SC2086
    refused "${option%% *} is for " two.json $option
    says err "and not for --calibrate of files alone"
done
job=(predict --calibrate --slurm --nodes 2 --ranks-per-node 2)
run 2 "${job[@]}" --ranks 2
says err "not for --calibrate --slurm; --ranks-per-node"
run 2 "${job[@]}" --out none.json
says err "not for --calibrate --slurm; the job writes"
run 2 "${job[@]}" two.json
says err "two.json: the job takes no files"
run 2 "${job[@]}" mnist --sizes 1KiB
says err "--sizes is of exchanges"
refused "--list and --calibrate" --list
# A batch of all ranks cannot be half and twice that of one: said before anything is measured.
refused '"batch.per_rank" and "batch.global" exclude each other' mnist batch.global=64
says err "--calibrate measures batches of a rank"
! grep -q "exchanges of" "$work/out" || fail "measured before the batch was refused"
run 2 predict --calibrate two.json --out "$work/none/file.json"
says err "the file cannot be written"
run 2 predict
says err "--calibrate"

# What was measured before something else is wrong is kept, also where names are long; a calibration from it and the rest is one command.
long=$work/$(printf 'long%.0s' $(seq 20))
mkdir "$long"
TMPDIR=$long run 2 predict --calibrate --ranks 2 --sizes 1KiB,64KiB,1MiB --steps 5 --out kept.json odd.json
says err "odd.json: has neither exchanges"
kept=$(sed -n 's/.*what was measured is kept: `lockstep predict --calibrate \([^`]*\)`.*/\1/p' "$work/err")
case $kept in "$long"/lockstep-calibrate-*) ;; *) fail "not kept in $long: $(cat "$work/err")" ;; esac
# shellcheck disable=SC2086 # a pattern
run 0 predict --calibrate $kept --out kept.json
says out "from 9 times of exchanges"
TMPDIR=$long run 0 predict --calibrate --ranks 2 --sizes 1KiB,64KiB,1MiB --steps 5 --out kept.json
[ "$(ls "$long" | wc -l)" = 1 ] || fail "left behind: $(ls "$long")"
# Half, once and twice the batch, also where half is none.
run 0 predict --calibrate linear batch.per_rank=3 --ranks 1 --steps 2 --threads "$(nproc)" --out kept.json
for part in "/3] steps of 1 rank, batch 1:" "/3] steps of 1 rank, batch 3:" "/3] steps of 1 rank, batch 6:"; do says out "$part"; done

run 0 predict --calibrate --slurm --nodes 2 --ranks-per-node 4 --threads 3
for part in "#SBATCH --nodes=2" "#SBATCH --ntasks-per-node=4" "#SBATCH --cpus-per-task=3" "bench --collectives --export calibrate-2x4.json"; do says out "$part"; done
bash -n out || fail "the script is no shell"
run 0 predict --calibrate --slurm --nodes 2 --ranks-per-node 4 --sizes 1KiB,1MiB --steps 7 --seconds 2.5
says out "bench --collectives --sizes 1KiB,1MiB --steps 7 --seconds 2.5 --export"
run 0 predict --calibrate --slurm --nodes 2 --ranks-per-node 4 mnist parallel.strategy=fsdp
says out "bench mnist parallel.strategy=fsdp --export"
run 0 predict --calibrate --slurm --nodes 1 --ranks-per-node 2 mnist 'name=it'"'"'s'
says out "bench mnist"
bash -n out || fail "the script is no shell"

echo "$n checks, $failures failed"
[ "$failures" -eq 0 ]
