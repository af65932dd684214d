"""layout.py make FILE | check FILE...: writes a safetensors file, or checks that files follow the layout.

Knows the layout from its description alone (struct, json, numpy): it shares no code with what it checks.
"""
import json
import struct
import sys

import numpy as np

TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "I64": "<i8", "I32": "<i4", "U8": "u1", "BOOL": "?"}


def contents():
    """What `make` writes and `check` expects of every file made from it."""
    rng = np.random.default_rng(5)
    return {
        "fc.weight": ("F32", rng.standard_normal((4, 3)).astype("<f4")),
        "fc.bias": ("F16", rng.standard_normal(5).astype("<f2")),
        "mask": ("BOOL", np.array([True, False, True])),
        "scalar": ("F64", np.array(2.5)),
        "ünïcode": ("I32", np.arange(6, dtype="<i4").reshape(1, 2, 3)),
        "none": ("U8", np.zeros((0, 2), "u1")),
    }


def make(path):
    tensors = dict(contents(), **{"bn.num_batches_tracked": ("I64", np.array(7, "<i8"))})
    header, data = {"__metadata__": {"by": "layout.py"}}, b""
    for name, (kind, x) in tensors.items():
        header[name] = {"dtype": kind, "shape": list(x.shape), "data_offsets": [len(data), len(data) + x.nbytes]}
        data += x.tobytes()
    text = json.dumps(header).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)


def check(path):
    with open(path, "rb") as f:
        raw = f.read()
    (length,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8 : 8 + length])
    data = raw[8 + length :]
    assert raw[8:9] == b"{", "the header starts with a brace"
    assert (8 + length) % 64 == 0, "the data starts at a multiple of 64"
    assert all(isinstance(v, str) for v in header.pop("__metadata__", {}).values())
    want, end = contents(), 0
    assert sorted(header) == sorted(want), (sorted(header), sorted(want))
    for name, about in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        begin, stop = about["data_offsets"]
        kind, x = want[name]
        assert begin == end, f"{name}: starts at {begin}, the one before ends at {end}"
        assert begin % np.dtype(TYPES[about["dtype"]]).itemsize == 0, f"{name}: elements are aligned"
        got = np.frombuffer(data[begin:stop], TYPES[about["dtype"]]).reshape(about["shape"])
        assert about["dtype"] == kind and np.array_equal(got, x), f"{name}: {got} instead of {x}"
        end = stop
    assert end == len(data), f"{len(data) - end} bytes follow the last tensor"
    try:
        from safetensors.numpy import load_file
    except ImportError:
        return "read by layout.py"
    assert all(np.array_equal(load_file(path)[name], x) for name, (_, x) in want.items())
    return "read by layout.py and by safetensors"


if sys.argv[1] == "make":
    make(sys.argv[2])
else:
    for file in sys.argv[2:]:
        print(f"{file.rsplit('/', 1)[-1]}: {check(file)}")
