#!/usr/bin/env python3
"""draw_terminal.py TITLE OUT.svg < text: draws what a command printed as a picture of a terminal.

The text is taken as it is: lines of a real run, saved by `script`, `tmux capture-pane -p` or a redirection.  Of a line with
carriage returns the last state counts, as on a terminal; a line that begins with "$ " is drawn as typed.
"""
import sys
from xml.sax.saxutils import escape

SIZE, LINE, WIDTH, PAD = 13, 17, 7.83, 14  # pixels: font, line, character, border


def lines_of(text):
    rows = [row.rstrip().split("\r")[-1] for row in text.expandtabs().split("\n")]
    while rows and not rows[-1]:
        rows.pop()
    return rows


def draw(title, rows):
    width = round(max(map(len, rows)) * WIDTH + 2 * PAD)
    height = (len(rows) + 2) * LINE + 2 * PAD
    yield f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img">'
    yield f"<title>{escape(title)}</title>"
    yield f'<rect width="{width}" height="{height}" rx="8" fill="#1b1f24"/>'
    for k, colour in enumerate(("#ff5f57", "#febc2e", "#28c840")):
        yield f'<circle cx="{PAD + 6 + 18 * k}" cy="{PAD + 4}" r="5" fill="{colour}"/>'
    yield f'<text x="{width / 2:g}" y="{PAD + 8}" text-anchor="middle" font-family="sans-serif" font-size="12" fill="#8b949e">{escape(title)}</text>'
    yield f'<g font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="{SIZE}" fill="#d7dde4" xml:space="preserve">'
    for k, row in enumerate(rows):
        if row:
            colour = ' fill="#7ee787"' if row.startswith("$ ") else ""
            yield f'<text x="{PAD}" y="{PAD + (k + 2) * LINE + 8}"{colour} textLength="{len(row) * WIDTH:g}" lengthAdjust="spacingAndGlyphs">{escape(row.replace(" ", chr(160)))}</text>'
    yield "</g></svg>"


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__.strip())
    rows = lines_of(sys.stdin.read())
    if not rows:
        sys.exit("draw_terminal.py: there is nothing on standard input")
    with open(sys.argv[2], "w", encoding="utf-8") as out:
        out.write("\n".join(draw(sys.argv[1], rows)) + "\n")


if __name__ == "__main__":
    main()
