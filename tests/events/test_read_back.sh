#!/usr/bin/env bash
# An event file is read alike by the program's reader and by an independent one, whole and torn.
set -euo pipefail
cd "$(dirname "$0")/../.."
tool=$LS_BUILD_DIR/tests/tools/events_tool
if ! command -v python3 >/dev/null; then
    echo "skipped: python3 is not installed"
    exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failures=0

# same NAME FILE FILE
same() {
    if diff "$2" "$3"; then
        echo "$1: $(wc -l <"$2") lines"
    else
        echo "$1: differ"
        failures=$((failures + 1))
    fi
}

file=$("$tool" write "$folder")
"$tool" read "$file" >"$folder/ours"
python3 tests/events/read_events.py "$file" >"$folder/python" 2>"$folder/hparams"
same "whole file" "$folder/ours" "$folder/python"

# Both could be wrong together: what was asked for.
grep -v plugin "$folder/python" | sed -n '1,5p;17,$p' >"$folder/got"
cat >"$folder/want" <<'EOF'
version 0 - 13 bytes 8b8b6cc1
scalar 0 hp_metric -1
scalar 49 train/loss_step 0.0204081628
scalar 49 train/acc_step 0.122500002
scalar 99 train/loss_step 0.0101010101
scalar 399 train/loss_step 0.00250626565
scalar 399 train/acc_step 0.997500002
scalar 1099511627776 val/acc_best inf
scalar -1 negative -0.5
text 0 config 155 bytes 8bf1392e
image 300 sample 28x14x3 22 bytes fba024a8
restart 200 -
EOF
same "expected values" "$folder/got" "$folder/want"
cat >"$folder/want" <<'EOF'
hparam optimizer.name type 1
hparam optimizer.lr type 3
hparam seed type 3
metric hp_metric
value optimizer.name sgd
value optimizer.lr 0.1
value seed 1.0
EOF
same "hyperparameters" "$folder/hparams" "$folder/want"

size=$(stat -c %s "$file")
for cut in 1 4 5 16 17 100; do
    head -c $((size - cut)) "$file" >"$folder/torn"
    status=0
    "$tool" read "$folder/torn" >"$folder/ours" || status=$?
    python3 tests/events/read_events.py "$folder/torn" >"$folder/python" 2>/dev/null || true
    same "torn by $cut (exit status $status)" "$folder/ours" "$folder/python"
    [ "$status" -eq 2 ] || { echo "expected exit status 2"; failures=$((failures + 1)); }
done
[ "$failures" -eq 0 ]
