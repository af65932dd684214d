#!/usr/bin/env bash
# test_page_slow.sh: a report as a browser lays it out, in a window and on a phone: nothing is cut off, nothing lies on something
# else, letters are large enough to be read.
set -uo pipefail
. "$(dirname "$0")/../cli/cli_lib.sh"
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || { echo "skipped: no Chromium"; exit 77; }

for k in $(seq 10 21); do
    r=$work/runs/mnist-10k-augmented-20261115-1150$k-44cb
    mkdir -p "$r"
    echo '{"state": "completed", "ranks": 2, "steps": 20, "epochs": 2, "metrics": {"last": {"loss": 0.5, "acc": 0.5}, "test": {"loss": 0.75, "acc": 0.5}},
 "samples_per_s": {"p16": 23900, "p50": 24000, "p84": 25100}, "step_s": {"p16": 0.058, "p50": 0.064, "p84": 0.071}, "wall_s": 114.5,
 "ledger_s": {"setup": 0.5, "compute": 3, "comm": 1, "idle": 2}, "weights_xxh3": "00ff00ff00ff00ff", "version": "0.1.0", "host": "n1"}' >"$r/summary.json"
    echo '{"step": 10, "epoch": 1, "time_s": 2, "train/loss_epoch": 2, "val/loss_epoch": 1.5}
{"step": 20, "epoch": 2, "time_s": 4, "train/loss_epoch": 1, "val/loss_epoch": 0.5}' >"$r/metrics.jsonl"
    printf 'name: "mnist"\noptimizer:\n  lr: 0.%d\nseed: 1\n' "$k" >"$r/config.yaml"
done
run 0 report "$work/runs" --out "$work/page"

# What is wrong, one a line, as the page's text.
cat "$work/page/report.html" - >"$work/page/measured.html" <<'J'
<script>
const wrong = [], shown = (e) => e.getClientRects().length > 0, w = document.documentElement.clientWidth;
if (document.documentElement.scrollWidth > w) wrong.push(`the page is ${document.documentElement.scrollWidth} wide`);
document.querySelectorAll(".table").forEach((t) => {
    if (!shown(t)) return;
    if (w > 1000 && t.scrollWidth > t.clientWidth) wrong.push(`${t.id} is cut: ${t.scrollWidth} of ${t.clientWidth}`);
    if (t.getBoundingClientRect().right > w) wrong.push(`${t.id} leaves the page`);
});
let texts = 0;
document.querySelectorAll("figure svg").forEach((svg) => {
    if (!shown(svg)) return;
    const box = svg.getBoundingClientRect(), keys = [];
    svg.querySelectorAll("text").forEach((t) => {
        const b = t.getBoundingClientRect();
        texts++;
        if (b.height < 11) wrong.push(`"${t.textContent}" is ${b.height} high`);
        if (b.right > box.right + 1 || b.left < box.left - 1) wrong.push(`"${t.textContent}" leaves its figure`);
        if (t.parentElement.classList.contains("key")) keys.push([t, b]);
    });
    keys.forEach(([t, b], i) => keys.slice(0, i).forEach(([u, c]) => {
        if (b.left < c.right && c.left < b.right && b.top < c.bottom - 2 && c.top < b.bottom - 2)
            wrong.push(`"${t.textContent}" lies on "${u.textContent}"`);
    }));
});
parent.postMessage([`width ${w}, texts ${texts > 50 ? "many" : texts}, wrong ${wrong.length}`, ...wrong.slice(0, 20)].join("\n"), "*");
</script>
J
for width in 1280 390; do
    mkdir -p "$work/profile"
    # No window is as narrow as a phone: the page is framed.
    echo "<!DOCTYPE html><pre>none</pre><iframe src=measured.html style='width: ${width}px; height: 900px; border: 0'></iframe>
<script>addEventListener('message', (e) => { document.querySelector('pre').textContent = e.data; });</script>" >"$work/page/frame.html"
    timeout 240 "$browser" --headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking \
        --disable-component-update --disable-sync --hide-scrollbars --user-data-dir="$work/profile" --window-size=1300,1000 \
        --virtual-time-budget=3000 --dump-dom "file://$work/page/frame.html" >"$work/dom" 2>"$work/err"
    n=$((n + 1))
    if ! grep -q "<pre>" "$work/dom"; then
        echo "skipped: the browser does not start here: $(tail -1 "$work/err")"
        exit 77
    fi
    grep -q "<pre>width $width, texts many, wrong 0" "$work/dom" || fail "at $width pixels: $(sed -n '/<pre>/,/<\/pre>/p' "$work/dom")"
done

echo "$n checks, $failures failed"
[ "$failures" -eq 0 ]
