"""tensors.py: looks into safetensors files and makes others of them, with nothing but the standard library.

    change IN OUT CHANGE...   dtype=F64|F16|BF16, prefix=TEXT, drop=GLOB, add=NAME, counter=NAME, zero=GLOB
    same A B GLOB             whether the tensors that match have the same bytes in both
    differ A B GLOB           whether each of them has other bytes in B
    close A B TOLERANCE [NOT] whether all f32 tensors together, those with a name like the regular expression NOT left
                              out, differ by at most that part of their length
    names FILE
"""
import fnmatch
import json
import re
import struct
import sys


def read(path):
    with open(path, "rb") as f:
        raw = f.read()
    n = struct.unpack("<Q", raw[:8])[0]
    header, data = json.loads(raw[8:8 + n]), raw[8 + n:]
    header.pop("__metadata__", None)
    return {k: (v["dtype"], v["shape"], data[v["data_offsets"][0]:v["data_offsets"][1]]) for k, v in header.items()}


def write(path, tensors):
    header, data = {}, b""
    for name, (dtype, shape, raw) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)


def convert(tensor, to):
    dtype, shape, raw = tensor
    if dtype != "F32":
        return tensor
    values = struct.unpack(f"<{len(raw) // 4}f", raw)
    if to == "BF16":
        return to, shape, b"".join(raw[i + 2:i + 4] for i in range(0, len(raw), 4))
    return to, shape, struct.pack(f"<{len(values)}{'d' if to == 'F64' else 'e'}", *values)


def change(path, out, *changes):
    tensors = read(path)
    for what, value in (c.split("=", 1) for c in changes):
        if what == "dtype":
            tensors = {k: convert(v, value) for k, v in tensors.items()}
        elif what == "prefix":
            tensors = {value + k: v for k, v in tensors.items()}
        elif what == "drop":
            tensors = {k: v for k, v in tensors.items() if not fnmatch.fnmatchcase(k, value)}
        elif what == "zero":
            tensors = {k: (v[0], v[1], bytes(len(v[2])) if fnmatch.fnmatchcase(k, value) else v[2])
                       for k, v in tensors.items()}
        elif what == "add":
            tensors[value] = ("F32", [2], struct.pack("<2f", 1, 2))
        else:
            tensors[value] = ("I64", [], struct.pack("<q", 7))
    write(out, tensors)


def compare(a, b, glob, same):
    x, y = read(a), read(b)
    names = [k for k in x if fnmatch.fnmatchcase(k, glob)]
    wrong = [k for k in names if (x[k] == y.get(k)) != same]
    if wrong or not names:
        sys.exit(f"{glob}: {'other' if same else 'the same'} bytes: {wrong}" if names else f"{glob}: no such tensor")


def close(a, b, tolerance, left_out=None):
    x, y = read(a), read(b)
    apart = length = 0.0
    for name, (dtype, _, raw) in x.items():
        if dtype != "F32" or (left_out and re.search(left_out, name)):
            continue
        p = struct.unpack(f"<{len(raw) // 4}f", raw)
        q = struct.unpack(f"<{len(raw) // 4}f", y[name][2])
        apart += sum((u - v) ** 2 for u, v in zip(p, q))
        length += sum(u * u for u in p)
    part = (apart / length) ** 0.5 if length > 0 else float("nan")
    if not part <= float(tolerance):
        sys.exit(f"they differ by {part:.3g} of their length, allowed {tolerance}")
    print(f"{part:.3g}")


command, args = sys.argv[1], sys.argv[2:]
if command == "change":
    change(*args)
elif command == "close":
    close(*args)
elif command == "names":
    print("\n".join(read(args[0])))
else:
    compare(*args, command == "same")
