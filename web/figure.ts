// figure.ts: the arithmetic of a figure on a page: positions, ticks, numbers, the points under a pointer, tables as
// CSV.  Pure functions of plain data; report.ts does what needs a document.

/** An axis as the program drew it (src/report/chart_json.c). `base` is 0 for a linear one, else that of the logarithm. */
export interface Axis {
    base: number;
    lo: number;
    hi: number;
    from: number;
    to: number;
}

export interface Series {
    name: string;
    x?: (number | null)[];
    y?: (number | null)[];
    lo?: (number | null)[];
    hi?: (number | null)[];
    flag?: number[];
}

/** Where a drawing has its plot. */
export interface View {
    x: Axis;
    y?: Axis;
    top: number;
    bottom: number;
}

/** A chart in one of its drawings. */
export interface Chart extends View {
    kind: "lines" | "bars" | "timeline";
    xLabel: string;
    flag: string;
    series: Series[];
}

const along = (a: Axis, v: number): number => (a.base === 0 ? v : Math.log(v) / Math.log(a.base));
const back = (a: Axis, t: number): number => (a.base === 0 ? t : Math.pow(a.base, t));

/** Where a value lies, in pixels. */
export function position(a: Axis, v: number): number {
    const lo = along(a, a.lo);
    return a.from + ((along(a, v) - lo) / (along(a, a.hi) - lo)) * (a.to - a.from);
}

/** The value at a pixel. */
export function valueAt(a: Axis, pixel: number): number {
    const lo = along(a, a.lo);
    return back(a, lo + ((pixel - a.from) / (a.to - a.from)) * (along(a, a.hi) - lo));
}

/** The part of an axis between two pixels, at the same place. */
export function zoomed(a: Axis, p: number, q: number): Axis {
    const [u, v] = [valueAt(a, p), valueAt(a, q)];
    return { ...a, lo: Math.min(u, v), hi: Math.max(u, v) };
}

/** Ticks as the program makes them: 1, 2 or 5 times a power of ten, or the powers of a logarithmic axis. */
export function ticks(a: Axis, wanted: number): number[] {
    const [lo, hi] = [along(a, a.lo), along(a, a.hi)];
    const raw = (hi - lo) / wanted;
    if (!(raw > 0) || !isFinite(raw)) return [];
    const power = Math.pow(10, Math.floor(Math.log10(raw)));
    const lead = raw / power;
    let step = (lead < 1.5 ? 1 : lead < 3.5 ? 2 : lead < 7.5 ? 5 : 10) * power;
    // Between two powers a logarithmic axis is nearly a linear one.
    if (a.base !== 0 && hi - lo < 1.5) return ticks({ ...a, base: 0 }, wanted);
    if (a.base !== 0) step = Math.max(1, Math.round(step));
    const out: number[] = [];
    for (let k = Math.ceil(lo / step - 1e-9); k * step <= hi + 1e-9 * (hi - lo) && out.length < 32; k++)
        out.push(back(a, k === 0 ? 0 : Number((k * step).toPrecision(12))));
    return out;
}

/** A number with as many digits that count; thousands are separated. */
export function numberText(v: number, digits: number): string {
    if (v === 0 || !isFinite(v)) return String(v);
    const size = Math.abs(v);
    if (size >= 1e12 || size < 1e-4) return Number(v.toPrecision(digits)).toExponential().replace("e+", "e");
    const decimals = Math.max(0, digits - 1 - Math.floor(Math.log10(size)));
    const [whole, part] = v.toFixed(Math.min(decimals, 20)).split(".") as [string, string?];
    const grouped = whole.replace(/\B(?=(\d{3})+$)/g, ",");
    const trimmed = (part ?? "").replace(/0+$/, "");
    return trimmed === "" ? grouped : `${grouped}.${trimmed}`;
}

/** Tick labels: no more decimals than the distance of ticks needs. */
export function tickTexts(values: number[]): string[] {
    let step = Infinity;
    for (let i = 1; i < values.length; i++) step = Math.min(step, Math.abs(values[i]! - values[i - 1]!));
    return values.map((v) => {
        if (v === 0 || !isFinite(step)) return numberText(v, 3);
        const digits = Math.floor(Math.log10(Math.abs(v))) - Math.floor(Math.log10(step) + 1e-9) + 1;
        return numberText(v, Math.max(1, Math.min(12, digits)));
    });
}

/** Moves every point of a path of absolute M and L commands, as the program writes them. */
export function movePath(d: string, x: (p: number) => number, y: (p: number) => number): string {
    return d.replace(/([ML])(-?[\d.]+) (-?[\d.]+)/g, (_, c: string, px: string, py: string) =>
        `${c}${x(Number(px)).toFixed(1)} ${y(Number(py)).toFixed(1)}`);
}

/** The index of the point that lies nearest to a pixel of the x axis and can be seen; -1: there is none. */
export function nearest(s: Series, a: Axis, pixel: number): number {
    let best = -1;
    let distance = Infinity;
    s.x?.forEach((x, i) => {
        const y = s.y?.[i];
        if (x === null || y === null || y === undefined || x < a.lo || x > a.hi) return;
        const d = Math.abs(position(a, x) - pixel);
        if (d < distance) [best, distance] = [i, d];
    });
    return best;
}

export interface ReadOut {
    x: number;
    rows: { series: number; text: string }[];
}

/** What is to be read at a pixel: the nearest x of all, and of every series that is shown its value there. */
export function readOut(c: Chart, hidden: ReadonlySet<number>, a: Axis, pixel: number): ReadOut | null {
    const found: { series: number; i: number; x: number }[] = [];
    c.series.forEach((s, k) => {
        const i = hidden.has(k) ? -1 : nearest(s, a, pixel);
        if (i >= 0) found.push({ series: k, i, x: s.x![i]! });
    });
    if (found.length === 0) return null;
    const off = (x: number): number => Math.abs(position(a, x) - pixel);
    const x = found.reduce((best, f) => (off(f.x) < off(best) ? f.x : best), found[0]!.x);
    // A series whose next point is far from there has no value to show.
    const near = found.filter((f) => Math.abs(position(a, f.x) - position(a, x)) < 12);
    return { x, rows: near.map((f) => ({ series: f.series, text: valueText(c, f.series, f.i, x) })) };
}

function valueText(c: Chart, series: number, i: number, x: number): string {
    const s = c.series[series]!;
    const [lo, hi] = [s.lo?.[i] ?? null, s.hi?.[i] ?? null];
    let text = numberText(s.y![i]!, 4);
    if (lo !== null && hi !== null) text += ` (${numberText(lo, 4)} to ${numberText(hi, 4)})`;
    if (s.x![i] !== x) text += ` at ${numberText(s.x![i]!, 4)}`;
    if (s.flag?.[i]) text += `, ${c.flag}`;
    return text;
}

/** Rows as CSV (RFC 4180), as in the files beside the page (src/report/sheet.c): numbers lose the commas between their
 *  thousands; other text that a spreadsheet would take for a formula gets an apostrophe in front. */
export function csvOf(rows: string[][]): string {
    const number = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;
    const plain = (t: string): string => (/^-?\d{1,3}(,\d{3})+(\.\d*)?$/.test(t) ? t.replace(/,/g, "") : t);
    const harmless = (t: string): string => (/^[=+\-@\t\r]/.test(t) && t !== "-" && !number.test(t) ? `'${t}` : t);
    const cell = (t: string): string => (/[",\r\n]/.test(t) ? `"${t.replace(/"/g, '""')}"` : t);
    return rows.map((r) => r.map(plain).map(harmless).map(cell).join(",") + "\r\n").join("");
}
