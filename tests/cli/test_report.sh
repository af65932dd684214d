#!/usr/bin/env bash
# test_report.sh: `lockstep report` on runs that were made by hand: the page, its charts and tables, several runs, damage.
set -uo pipefail
. "$(dirname "$0")/cli_lib.sh"

# make_run NAME LOSS: a run of two epochs on two ranks with a name that would be a tag
make_run() {
    local r=$work/runs/$1
    mkdir -p "$r"
    cat >"$r/summary.json" <<J
{"state": "completed", "ranks": 2, "steps": 20, "epochs": 2, "metrics": {"last": {"loss": $2, "acc": 0.5}, "test": {"loss": 0.75}},
 "samples_per_s": {"p16": 900, "p50": 1000, "p84": 1100}, "step_s": {"p16": 0.058, "p50": 0.064, "p84": 0.071}, "wall_s": 4.5,
 "ledger_s": {"setup": 0.5, "compute": 3, "comm": 1, "restart": 0}, "weights_xxh3": "00ff00ff00ff00ff", "version": "0.1.0", "host": "n1"}
J
    cat >"$r/metrics.jsonl" <<J
{"step": 0, "epoch": 0.1, "time_s": 1, "train/loss_step": 2.5, "lr": 0.1}
{"step": 10, "epoch": 1, "time_s": 2, "train/loss_epoch": 2, "train/acc_epoch": 0.25}
{"step": 10, "epoch": 1, "time_s": 2.5, "val/loss_epoch": 1.5, "val/loss_best": 1.5, "<b>strange": 1}
{"step": 20, "epoch": 2, "time_s": 4, "train/loss_epoch": 1, "val/loss_epoch": $2, "test/loss_epoch": 0.75}
J
}
# has FILE TEXT: the file contains the text
has() {
    n=$((n + 1))
    grep -qF -- "$2" "$1" || fail "$1 lacks \"$2\""
}

make_run '<i>one' 1.25
make_run two 0.5
one="$work/runs/<i>one"

run 0 report "$one" --json
is event report
is report "$one/report/report.html"
is runs '[{"run": "'"$one"'", "name": "<i>one", "state": "completed", "damaged_lines": 0}]'
page=$one/report/report.html
for text in "&lt;i&gt;one" "<td class=\"r\">900.0 to 1,100</td>" "00ff00ff00ff00ff" ">validation</text>" ">training, mean of epochs</text>" ">best so far</text>" \
    ">&lt;b&gt;strange</text>" ">Learning rate</text>" ">Where the seconds went</text>" "&lt;i&gt;one, compute: 3 (66.7 %)"; do
    has "$page" "$text"
done
n=$((n + 1))
grep -q "<i>\|<b>strange" "$page" && fail "a name became a tag"
# 10 steps of 64 samples in 1 s, then in 2 s: what the curve of throughput must go through
has "$page" ">between reports: 640 at 2</title>"
has "$page" ">between reports: 320 at 4</title>"
n=$((n + 1))
[ "$(grep -o '[a-z]*://[^"'"'"' <]*' "$page" | sort -u | grep -cvx 'http://www.w3.org/2000/svg')" -eq 0 ] ||
    fail "the page names other addresses: $(grep -o '[a-z]*://[^"'"'"' <]*' "$page" | sort -u)"
has "$one/report/runs.csv" "<i>one,completed,2,20,2,1.25,0.5,0.75,1000,"
has "$one/report/runs.md" "| run | state |"
has "$one/report/throughput.svg" "http://www.w3.org/2000/svg"
n=$((n + 1))
if $have_json; then # every chart is well-formed XML
    python3 -c 'import sys, xml.dom.minidom
for path in sys.argv[1:]: xml.dom.minidom.parse(path)' "$one"/report/*.svg || fail "a chart is no XML"
fi

# Several runs, by the folder that holds them: the same metric in one chart.
run 0 report "$work/runs" --out "$work/both"
says out "$work/both/report.html"
has "$work/both/report.html" "&lt;i&gt;one, validation: 1.25 at 2</title>"
has "$work/both/report.html" ">two</text>"
has "$work/both/report.html" ">loss: training; dashed: validation; last dot: test</text>"
n=$((n + 1))
grep -q "best so far" "$work/both/report.html" && fail "what follows from validation is drawn beside other runs"
n=$((n + 1))
[ "$(grep -c '' "$work/both/runs.csv")" -eq 3 ] || fail "the table has not two rows"

# Two reports 0.7 ms apart are no rate of their own: the axis ends where the steps do.
make_run spike 1.25
printf '%s\n' '{"step": 30, "epoch": 3, "time_s": 5, "lr": 0.1}' '{"step": 31, "epoch": 3.1, "time_s": 5.0007, "lr": 0.1}' \
    '{"step": 40, "epoch": 4, "time_s": 6, "lr": 0.1}' >>"$work/runs/spike/metrics.jsonl"
run 0 report "$work/runs/spike"
n=$((n + 1))
[ "$(sed -n '/class="axis y"/,/<\/g>/s/.*>\([0-9,]*\)<\/text>/\1/p' "$work/runs/spike/report/throughput.svg" | tail -1)" = 1,200 ] ||
    fail "the axis of throughput ends elsewhere: $(grep -A9 'class="axis y"' "$work/runs/spike/report/throughput.svg")"
has "$work/runs/spike/report/report.html" ">between reports: 640 at 6</title>"

# A metric that moves by rounding alone is flat, with short ticks.
for i in 1 2 3 4 5 6; do printf '{"step": 5%d, "epoch": %d, "time_s": 7, "val/acc_top5": 0.096000000%d}\n' $i $i $i; done >>"$work/runs/spike/metrics.jsonl"
run 0 report "$work/runs/spike"
n=$((n + 1))
grep -q "0\.0960000" "$work/runs/spike/report/curve-03-acc_top5.svg" && fail "an axis shows rounding"
has "$work/runs/spike/report/curve-03-acc_top5.svg" ">0.100</text>"
rm -r "$work/runs/spike"

# Settings: those that differ by run, the others folded; runs of one name are told apart by their paths.
printf 'name: "mnist"\noptimizer:\n  lr: 0.1\nseed: 1\n' >"$one/config.yaml"
printf 'name: "mnist"\noptimizer:\n  lr: 0.01\nseed: 1\n' >"$work/runs/two/config.yaml"
mkdir "$work/more"
cp -r "$work/runs/two" "$work/more/two"
run 0 report "$work/runs" "$work/more/two" --out "$work/three"
has "$work/three/report.html" "<td>optimizer.lr</td><td>0.1</td><td>0.01</td><td>0.01</td>"
has "$work/three/report.html" "2 settings that all runs share</summary>"
has "$work/three/settings.csv" "seed,1"
has "$work/three/report.html" ">$work/more/two</text>"
has "$work/three/report.html" ">$work/runs/two</text>"
run 0 report "$work/runs/two"
has "$work/runs/two/report/report.html" "all 3 settings</summary>"

# As many runs as fit have as many colours, and more are refused.
mkdir "$work/many"
for i in $(seq 10 41); do cp -r "$work/runs/two" "$work/many/long-name-of-a-run-$i"; done
run 0 report "$work/many" --out "$work/all"
n=$((n + 1))
[ "$(grep -o 'class="key c[0-9]*"' "$work/all/curve-01-loss.svg" | sort | uniq -d | wc -l)" -eq 0 ] || fail "a colour is there twice"
[ "$(grep -c 'class="key c[0-9]*"' "$work/all/curve-01-loss.svg")" -eq 32 ] || fail "not 32 runs in the legend"
has "$work/all/report.html" ">run-10</text>"
has "$work/all/report.html" 'Below, names are without what all begin with: &quot;long-name-of-a-&quot;.'
cp -r "$work/runs/two" "$work/many/one-more"
run 2 report "$work/many" --out "$work/all"
says err "more than 32 runs"

# Names that a spreadsheet would calculate.
cp -r "$work/runs/two" "$work/more/=1+1"
run 0 report "$work/more" --out "$work/formula"
has "$work/formula/runs.csv" "'=1+1,completed"
rm -r "$work/more/=1+1"

# A timeline where there are traces, of which a cut one is refused.
span='{"ph":"X","pid":0,"cat":"%s","name":"%s","ts":%s,"dur":%s,"args":{"layer":""}}'
printf "[$span,$span]" node conv2d 10 500 step "step 3" 10 600 >"$work/runs/two/trace-00000.json"
run 0 report "$work/runs/two"
has "$work/runs/two/report/step-1.svg" "<title>conv2d: 0.5</title>"
printf '[' >"$work/runs/two/trace-00000.json"
run 3 report "$work/runs/two"
says err "trace-00000.json is no whole trace"
rm "$work/runs/two/trace-00000.json"

# Damage and mistakes say what is wrong and what helps.
run 2 report
says err "which run?"
run 2 report "$work/nowhere"
says err "there is no folder $work/nowhere"
mkdir "$work/empty"
run 3 report "$work/empty"
says err "holds no run"
sed -i '3ahello' "$work/runs/two/metrics.jsonl" # one damaged line hides no other
run 0 report "$work/runs/two" --json
says err "metrics.jsonl, line 4: no JSON object"
holds 'o["runs"][0]["damaged_lines"] == 1'
has "$work/runs/two/report/report.html" ">validation: 0.5 at 2</title>"
rm "$work/runs/two/metrics.jsonl"
run 3 report "$work/runs/two"
says err "runs/two/metrics.jsonl: No such file"
echo '[]' >"$work/runs/two/summary.json"
run 3 report "$work/runs/two"
says err "summary.json: no JSON object"
run 2 report "$one" --out /proc/nowhere
says err "/proc/nowhere"

echo "$n checks, $failures failed"
[ "$failures" -eq 0 ]
