#!/usr/bin/env bash
# test_runs.sh: `lockstep runs` on runs that were made by hand: lists, order, conditions, names, damage, removal; and what must not reach
# a terminal.  Runs that really run: test_runs_live.sh.
set -uo pipefail
. "$(dirname "$0")/cli_lib.sh"
cd "$work" || exit 1
boot=$(cat /proc/sys/kernel/random/boot_id)

# make_run NAME STATE ACC LR STARTED [ENDED]: a run with an owner that is gone; without ENDED it went without a word
make_run() {
    local r=runs/$1
    mkdir -p "$r/logs" "$r/checkpoints/step-00000020"
    ln -sfn step-00000020 "$r/checkpoints/last"
    cat >"$r/summary.json" <<J
{"name": "mnist", "state": "$2", "ranks": 2, "steps": 20, "epochs": 2, "metrics": {"last": {"loss": 0.75, "acc": $3}, "best": {"value": $3, "step": 20}, "test": {"acc": 0.25}},
 "samples_per_s": {"p16": 900, "p50": 1000, "p84": 1100}, "step_s": {"p16": 0.058, "p50": 0.064, "p84": 0.071}, "wall_s": 4.5,
 "ledger_s": {"setup": 0.5, "compute": 3}, "weights_xxh3": "00ff00ff00ff00ff", "version": "0.1.0", "host": "n1", "started": "$5", "written": "$5", "owner_epoch": 1}
J
    cat >"$r/owner.json" <<J
{"pid": 1, "host": "n1", "boot": "$boot", "start": "$5", ${6:+"\"ended\": \"$6\","} "epoch": 1, "begun": true, "name": "mnist", "command": "lockstep train mnist", "version": "0.1.0"}
J
    printf '%s\n' '{"step": 10, "epoch": 1, "time_s": 2, "train/loss_epoch": 2, "val/acc_epoch": 0.25, "lr": 0.1}' \
        '{"step": 20, "epoch": 2, "time_s": 4, "train/loss_epoch": 1, "val/acc_epoch": null}' >"$r/metrics.jsonl"
    printf 'name: "mnist"\noptimizer:\n  lr: %s\n  name: sgd\ntrain:\n  best_metric: "val/acc"\nseed: 1\n' "$4" >"$r/config.yaml"
    printf 'first\nlast of %s\n' "$1" >"$r/logs/rank-00000.log"
    printf 'rank one\n' >"$r/logs/rank-00001.log"
    touch -d 2026-11-15T10:20:30Z "$r/owner.json"
}
# order TEXT: the runs of the last list, by their first letters
order() {
    n=$((n + 1))
    local got
    got=$(awk 'NR > 2 { printf "%s", substr($1, 1, 1) }' "$work/out")
    [ "$got" = "$1" ] || fail "the order is $got, not $1: $(cat "$work/out")"
}

# Nothing at all, nothing here, no such folder.
run 0 runs
says out "no runs in runs; \`lockstep train\` makes one"
mkdir empty
run 0 runs list empty
says out "no runs"
run 0 runs list empty --json
holds 'o["event"] == "runs"' 'o["folder"] == "empty"' 'o["runs"] == []'
run 2 runs list nowhere
says err "there is no folder nowhere"
run 2 runs show last
says err "runs/ holds no run"

make_run a-20261101-000000-00aa completed 0.5 0.1 2026-11-01T00:00:00.000Z 2026-11-01T00:00:05.000Z
make_run b-20261102-000000-00bb running 0.9 0.01 2026-11-02T00:00:00.000Z
make_run c-20261103-000000-00cc paused 0.7 0.5 2026-11-03T00:00:00.000Z 2026-11-03T00:00:05.000Z

# The newest first; other orders; conditions.
run 0 runs
order cba
says out "optimizer.lr"
says out "best val/acc"
n=$((n + 1))
grep -q "seed\|optimizer.name" out && fail "a setting that all share is listed"
run 0 runs list --sort acc
order acb
run 0 runs list --sort=-optimizer.lr
order cab
run 0 runs list --where 'acc>=0.7' --filter state!=killed
order c
run 0 runs list --where 'run~b-*'
order b
run 0 runs list --where 'acc>2'
says out "none of 3 runs"
run 2 runs list --where nonsense
says err "is no condition"
for slip in 'acc>abc' 'acc>' 'acc<=0,5' 'steps<1k'; do
    run 2 runs list --where "$slip"
    says err "\"$slip\": more and less are of numbers"
done
run 2 runs list --where state=complete
says err 'there are running, completed, paused, failed, killed, damaged and unknown'
run 2 runs list --where state!=
run 0 runs list --where 'run>b'
order cb
run 0 runs list --where state!=damaged
order cba
run 2 runs list --sort optimizer.lrr
says err 'did you mean "optimizer.lr"?'
run 2 runs list --where acx=1
says err 'did you mean "acc"?'
run 2 runs list --json --csv
run 2 runs lits
says err 'did you mean "list"?'

# A run whose owner died without a word is killed, and since when.
run 0 runs list --where state=killed
says out "killed, no sign of life since 2026-11-15 10:20:30"
run 0 runs --json
holds 'len(o["runs"]) == 3' 'o["settings_that_differ"] == ["optimizer.lr"]' 'o["runs"][0]["state"] == "paused"' \
    'o["runs"][1]["state"] == "killed" and o["runs"][1]["stale"] and not o["runs"][1]["alive"]' \
    'o["runs"][1]["last_sign"] == "2026-11-15T10:20:30Z"' 'o["runs"][2]["settings"] == {"optimizer.lr": "0.1"}' \
    'o["runs"][2]["started"] == "2026-11-01T00:00:00Z"' 'o["runs"][0]["stale"] == False'
run 0 runs list --csv
n=$((n + 1))
[ "$(sed -n 2p out)" = "$(printf 'c-20261103-000000-00cc,paused,2026-11-03 00:00:00,4.5,2,20,2,0.75,0.7,0.7,0.25,0.5\r')" ] || fail "CSV: $(cat out)"

# Names: whole, beginning, end, path, last, the experiment's where it is one's alone.
for name in a-20261101-000000-00aa a-2026 00aa runs/a-20261101-000000-00aa; do
    run 0 runs show $name --json
    holds 'o["id"] == "a-20261101-000000-00aa"'
done
run 0 runs show last --json
holds 'o["id"] == "c-20261103-000000-00cc"' 'o["checkpoints"] == {"steps": [20], "last": 20, "best": None}' 'o["settings"]["seed"] == "1"' \
    'o["summary"]["steps"] == 20' 'o["owner"]["command"] == "lockstep train mnist"'
run 2 runs show mnist
says err '"mnist" may be any of 3 runs: c-20261103-000000-00cc, b-'
run 2 runs show nobody
says err 'there is no run "nobody" in runs/'
run 2 runs show
says err "which run?"
run 2 runs show a b
says err '"b" is one word too many'
run 0 runs show 00bb
for text in "state         killed, no sign of life since" "owner         process 1 on n1 since 2026-11-02 00:00:00, gone" "command       lockstep train mnist" \
    "validation    loss 0.75, acc 0.9" "best          val/acc 0.9 at step 20" "checkpoints   step 20 (last)" "optimizer.lr                 0.01"; do
    says out "$text"
done
# Two runs of one name, in two folders.
mkdir other
cp -r runs/a-20261101-000000-00aa other/
run 0 runs list runs other
says out "runs/a-20261101-000000-00aa"
says out "other/a-20261101-000000-00aa"

# Logs, metrics.
run 0 runs logs 00aa
says out "last of a-"
run 0 runs logs 00aa -f
says out "last of a-"
run 0 runs logs 00aa --rank 1
says out "rank one"
run 2 runs logs 00aa --rank 2
says err "rank-00002.log: No such file"
run 2 runs logs 00aa --rank -1
run 0 runs metrics 00aa
n=$((n + 1))
[ "$(cat out)" = "$(printf 'step,epoch,time_s,train/loss_epoch,val/acc_epoch,lr\r\n10,1,2,2,0.25,0.1\r\n20,2,4,1,,\r')" ] || fail "metrics: $(cat out)"
run 0 runs metrics 00aa --json
holds 'o["rows"] == 2' 'o["columns"]["val/acc_epoch"] == [0.25, None]' 'o["columns"]["lr"] == [0.1, None]'
# Damaged lines among the others are left out, named once, and counted.
sed -i -e '1a{"step": 15, "epo\nno json' -e '$a[1]' runs/c-20261103-000000-00cc/metrics.jsonl
run 0 runs metrics 00cc
n=$((n + 1))
[ "$(cut -d, -f1 out)" = "$(printf 'step\n10\n20')" ] || fail "metrics: $(cat out)"
says err "warning: runs/c-20261103-000000-00cc/metrics.jsonl, line 2: no JSON object"
says err "left out (and 2 more such lines)"
n=$((n + 1))
[ "$(wc -l <err)" -eq 1 ] || fail "more than one warning: $(cat err)"
run 0 runs metrics 00cc --json
holds 'o["rows"] == 2' 'o["damaged_lines"] == 3' 'o["columns"]["step"] == [10, 20]'
run 0 runs compare 00aa 00cc
says out "train/loss_epoch, 1 to 2"
says err "metrics.jsonl, line 2: no JSON object"
sed -i -e 2,3d -e '$d' runs/c-20261103-000000-00cc/metrics.jsonl
run 0 runs metrics 00cc --json
holds 'o["rows"] == 2' 'o["damaged_lines"] == 0'

# Side by side.
run 0 runs compare 00aa 00bb
says out "train/loss_epoch, 1 to 2"
says out "█▁  a-20261101-000000-00aa  2 -> 1"
n=$((n + 1))
grep -q "^optimizer.lr  *0.1  *0.01$" out || fail "the settings are not beside each other: $(cat out)"
run 0 runs compare 00aa 00bb --json
holds 'o["settings_that_differ"] == ["optimizer.lr"]' 'len(o["runs"]) == 2'
run 0 runs compare 00aa 00bb --csv
says out "optimizer.lr,0.1,0.01"
run 0 runs compare 00aa 00bb --html --out page
says out "page/report.html"
n=$((n + 1))
grep -q "<td>optimizer.lr</td><td>0.1</td><td>0.01</td>" page/report.html || fail "the page lacks the settings"
grep -q "killed" page/report.html || fail "the page calls a dead run running"

# Damage fails no list.
printf '{"state": "comp' >runs/c-20261103-000000-00cc/summary.json
run 0 runs
says out "damaged"
order cba
run 0 runs show 00cc
says out "trouble "
head -c 2000000 /dev/zero >runs/a-20261101-000000-00aa/config.yaml
run 0 runs list
rm runs/a-20261101-000000-00aa/config.yaml
mkdir runs/no-run runs/pipe
mkfifo runs/pipe/summary.json
timeout 60 "$LOCKSTEP" runs >out 2>err || fail "a pipe in the place of a summary stops the list: $(cat err)"
rm -r runs/pipe runs/no-run

# What files hold does not reach the terminal, nor a name; CSV holds no formulas.
odd=$'runs/\e[31mred\e]0;x\a'
cp -r runs/b-20261102-000000-00bb "$odd"
printf 'a\e[2Jb\xff\r\n\ttabbed\n' >"$odd/logs/rank-00000.log"
sed -i 's/"acc"/"a\\u001b[2Jc"/; s/"mnist"/"=1+1"/' "$odd/summary.json"
sed -i 's/"train\/loss_epoch"/"=\\u001b[2J"/' "$odd/metrics.jsonl"
sed -i 's/lr: .*/lr: "\x1b[2J"/' "$odd/config.yaml"
cp -r runs/b-20261102-000000-00bb 'runs/=1+1'
for words in "list" "list --csv" "list --json" "show $(basename "$odd")" "logs $(basename "$odd")" "metrics $(basename "$odd")" \
    "metrics $(basename "$odd") --json" "show $(basename "$odd") --json" "compare $(basename "$odd") 00bb" "show nobody$(basename "$odd")"; do
    n=$((n + 1))
    # shellcheck disable=SC2086
    "$LOCKSTEP" runs $words >out 2>err
    if LC_ALL=C grep -q $'[\x01-\x08\x0b\x0c\x0e-\x1f\x7f]' out err; then fail "runs $words prints control characters: $(cat -v out err | head -3)"; fi
done
run 0 runs logs "$odd"
says out $'\ttabbed'
run 0 runs list --csv
says out "'=1+1,killed"
rm -r "$odd" 'runs/=1+1'

# Removal: only runs, no links, nothing without a yes, all or none.
ln -s "$work/other/a-20261101-000000-00aa" runs/link
mkdir kept
touch kept/file
ln -s "$work/kept" runs/a-20261101-000000-00aa/away
run 2 runs rm 00aa <<<y
says err "nobody is here to be asked; --yes"
run 2 runs rm --yes runs/link
says err "links are not followed"
run 2 runs rm --yes kept
run 2 runs rm --yes 00bb nobody
n=$((n + 1))
[ -e runs/b-20261102-000000-00bb/summary.json ] && [ -e other/a-20261101-000000-00aa/summary.json ] && [ -e kept/file ] || fail "something was removed"
rm runs/link
run 0 runs rm --yes a-2026 last ./runs/a-20261101-000000-00aa --json
holds 'o["removed"] == ["runs/a-20261101-000000-00aa", "runs/c-20261103-000000-00cc"]'
n=$((n + 1))
[ "$(ls runs)" = b-20261102-000000-00bb ] && [ -e kept/file ] || fail "left: $(ls runs kept)"
run 0 runs stop 00bb
says out "was over before: killed"

# What a list reads of a run is three small files, however many runs there are and whatever else they hold.
if command -v strace >/dev/null && strace -f -o /dev/null true 2>/dev/null; then
    opened() { strace -f -e trace=open,openat,openat2 -o calls "$LOCKSTEP" runs list >out 2>&1 && grep -c '"runs/' calls; }
    for i in $(seq 20); do cp -r runs/b-20261102-000000-00bb "runs/x-$i"; done
    few=$(opened)
    for i in $(seq 21 40); do cp -r runs/b-20261102-000000-00bb "runs/x-$i"; done
    many=$(opened)
    n=$((n + 1))
    [ $((many - few)) -le 60 ] || fail "20 more runs cost $((many - few)) more files to open"
fi

echo "$n checks, $failures failed"
[ "$failures" -eq 0 ]
