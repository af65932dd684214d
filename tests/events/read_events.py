#!/usr/bin/env python3
"""read_events.py FILE: prints an event file as `events_tool read` does, sharing nothing with it.

Framing, CRC-32C and protocol buffers are written out here once more, from their descriptions, so that an error
in the program's writer is not hidden by the same error in its reader.  Only the standard library is used.  Exit
status 1 at damage, 2 at a torn tail.
"""
import struct
import sys


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def records(data):
    """Yields the content of each record; returns the number of bytes left at the end."""
    at = 0
    while len(data) - at >= 12:
        length, check = struct.unpack_from("<QI", data, at)
        if masked(data[at:at + 8]) != check:
            sys.exit(f"damaged length at {at}")
        if len(data) - at < 16 + length:
            break
        content = data[at + 12:at + 12 + length]
        if masked(content) != struct.unpack_from("<I", data, at + 12 + length)[0]:
            sys.exit(f"damaged content at {at}")
        yield content
        at += 16 + length
    return len(data) - at


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift += 7
        at += 1
        if data[at - 1] < 128:
            return value, at


def fields(data):
    """A message as a dictionary from field number to the list of its values."""
    out, at = {}, 0
    while at < len(data):
        key, at = varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = varint(data, at)
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
            value = struct.unpack_from("<d" if kind == 1 else "<f", data, at)[0]
            at += size
        elif kind == 2:
            size, at = varint(data, at)
            if at + size > len(data):
                sys.exit("a field is longer than its message")
            value = data[at:at + size]
            at += size
        else:
            sys.exit(f"wire type {kind}")
        out.setdefault(key >> 3, []).append(value)
    return out


def first(message, number, default=b""):
    return message.get(number, [default])[0]


def show(kind, step, tag="-", extra="", content=b""):
    line = f"{kind} {step} {tag}{extra}"
    if content:
        line += f" {len(content)} bytes {crc32c(content):08x}"
    print(line)


def show_value(step, value):
    tag = first(value, 1).decode()
    plugin = fields(first(fields(first(value, 9)), 1))
    if 2 in value:
        show("scalar", step, tag, " %.9g" % value[2][0])
    elif 4 in value:
        image = fields(value[4][0])
        show("image", step, tag, f" {first(image, 2)}x{first(image, 1)}x{first(image, 3)}", first(image, 4))
    elif 8 in value:
        tensor = fields(value[8][0])
        size = first(fields(first(fields(first(tensor, 2)), 2)), 1, 0)
        if first(tensor, 1) != 7 or size != 1 or first(plugin, 1) != b"text":
            sys.exit(f"{tag}: not a text")
        show("text", step, tag, "", first(tensor, 8))
    else:
        if first(plugin, 1) != b"hparams":
            sys.exit(f"{tag}: not of the hparams plugin")
        show("plugin", step, tag, "", first(plugin, 2))
        show_hparams(fields(first(plugin, 2)))


def show_hparams(data):
    """To standard error, for test_read_back.sh: the program's own reader does not look into these."""
    if 2 in data:
        experiment = fields(data[2][0])
        for info in map(fields, experiment[4]):
            print("hparam", first(info, 1).decode(), "type", first(info, 4), file=sys.stderr)
        for info in map(fields, experiment[5]):
            print("metric", first(fields(first(info, 1)), 2).decode(), file=sys.stderr)
    if 3 in data:
        for entry in map(fields, fields(data[3][0])[1]):
            value = fields(first(entry, 2))
            print("value", first(entry, 1).decode(), value[2][0] if 2 in value else value[3][0].decode(), file=sys.stderr)


def main():
    with open(sys.argv[1], "rb") as f:
        data = f.read()
    reader = records(data)
    while True:
        try:
            event = fields(next(reader))
        except StopIteration as end:
            left = end.value
            break
        step = first(event, 2, 0)
        step -= (step >> 63) << 64
        if 3 in event:
            show("version", step, "-", "", event[3][0])
        elif 7 in event:
            show("restart" if first(fields(event[7][0]), 1) == 1 else "other", step)
        for value in fields(first(event, 5)).get(1, []):
            show_value(step, fields(value))
    if left:
        print(f"torn {left}")
        sys.exit(2)


main()
