"""grad_scaler.py: the loss scale and the learning rate of every step of a run, against the rules written out.

    check METRICS INITIAL INTERVAL OVERFLOWS [PEAK TOTAL]

METRICS is a metrics.jsonl with every step; OVERFLOWS are the steps, from 1, whose gradients were not finite ("3,7").
With PEAK and TOTAL the learning rate falls in a straight line from the one to 0 after TOTAL updates, and waits where an
update was left out.

    torch INITIAL INTERVAL STEPS OVERFLOWS...
compares the rules with the op that PyTorch's GradScaler calls.
"""
import json
import sys

LEAST, MOST = 1.0, 2.0 ** 24


def scales(initial, interval, overflows, steps):
    """torch.amp.GradScaler.update() with growth 2 and backoff 0.5, in bounds: the scale of each step."""
    scale, good, out = initial, 0, []
    for step in range(1, steps + 1):
        out.append(scale)
        if step in overflows:
            scale, good = scale * 0.5, 0
        else:
            good += 1
            if good == interval:
                scale, good = scale * 2.0, 0
        scale = min(max(scale, LEAST), MOST)
    return out


def steps_of(text):
    return {int(s) for s in text.split(",") if s}


def check(path, initial, interval, overflows, peak=None, total=None):
    rows = [json.loads(line) for line in open(path)]
    rows = [r for r in rows if "lr" in r]
    bad = steps_of(overflows)
    want = scales(float(initial), int(interval), bad, len(rows))
    assert rows and [r["step"] for r in rows] == list(range(1, len(rows) + 1)), [r["step"] for r in rows]
    got = [r["loss_scale"] for r in rows]
    assert got == want, f"scales are {got}, not {want}"
    if peak is None:
        return
    for i, row in enumerate(rows):
        made = i - len([s for s in bad if s <= i])
        lr = float(peak) * (1 - made / float(total))
        assert abs(row["lr"] - lr) < 1e-9, f"step {i + 1}: the rate is {row['lr']}, not {lr}"


def torch_rule(initial, interval, steps, *lists):
    try:
        import torch
        update = torch._amp_update_scale_
    except (ImportError, AttributeError) as e:
        print(f"skipped: {e}")
        sys.exit(77)
    for overflows in lists:
        torch_list(torch, update, initial, interval, steps, overflows)


def torch_list(torch, update, initial, interval, steps, overflows):
    scale, tracker = torch.full((1,), float(initial)), torch.zeros(1, dtype=torch.int32)
    bad, got = steps_of(overflows), []
    for step in range(1, int(steps) + 1):
        got.append(scale.item())
        try:
            update(scale, tracker, torch.full((1,), 1.0 if step in bad else 0.0), 2.0, 0.5, int(interval))
        except (RuntimeError, NotImplementedError) as e:
            print(f"skipped: PyTorch has it on GPUs only here: {str(e).split('.')[0]}")
            sys.exit(77)
    want = scales(float(initial), int(interval), bad, int(steps))
    assert got == want, f"PyTorch: {got}, the rules: {want}"


if __name__ == "__main__":
    {"check": check, "torch": torch_rule}[sys.argv[1]](*sys.argv[2:])
