// report.ts: what a report's page does when a reader points, clicks or drags.  The page shows everything without it.
//
// Pointing at a curve reads out the values of all series there; a click on the legend hides or shows a series; dragging
// zooms, a double click goes back; tables can be copied as CSV.  Names come from outside: they only ever become text.
import { Axis, Chart, ReadOut, View, csvOf, movePath, numberText, position, readOut, tickTexts, ticks, zoomed } from "./figure";

const SVG = "http://www.w3.org/2000/svg";
const LEAST_DRAG = 8;

function make(name: string, attributes: Record<string, string | number>, parent: Element): SVGElement {
    const e = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) e.setAttribute(key, String(value));
    parent.appendChild(e);
    return e;
}

interface Point {
    x: number;
    y: number;
}

class Figure {
    private readonly tip: HTMLElement;
    private readonly hidden = new Set<number>();
    /** Attributes as the program drew them: zooming begins from these every time. */
    private readonly drawn = new Map<Element, Record<string, string>>();
    private readonly titles = new Map<Element, string>();
    private readonly grids: Record<string, string> = {};
    private x: Axis;
    private y: Axis | undefined;
    private cursor: SVGElement | null = null;
    private drag: { from: Point; box: SVGElement } | null = null;

    constructor(private readonly figure: HTMLElement, private readonly svg: SVGSVGElement, private readonly chart: Chart) {
        this.x = chart.x;
        this.y = chart.y;
        this.tip = document.createElement("div");
        this.tip.className = "tip";
        this.tip.hidden = true;
        figure.appendChild(this.tip);
        figure.classList.add("live");
        this.remember();
        this.svg.addEventListener("pointermove", (e) => this.move(e));
        this.svg.addEventListener("pointerleave", () => this.leave());
        this.svg.addEventListener("pointerdown", (e) => this.press(e));
        this.svg.addEventListener("pointerup", (e) => this.release(e));
        this.svg.addEventListener("pointercancel", () => this.forget());
        this.svg.addEventListener("dblclick", () => this.zoom(chart.x, chart.y));
        this.svg.querySelectorAll<SVGElement>(".key[data-i]").forEach((key) => this.enliven(key));
    }

    private remember(): void {
        this.svg.querySelectorAll(".plot path, .plot rect, .plot circle").forEach((e) => {
            const kept: Record<string, string> = {};
            for (const name of ["d", "x", "width", "cx", "cy"]) {
                const value = e.getAttribute(name);
                if (value !== null) kept[name] = value;
            }
            this.drawn.set(e, kept);
            const title = e.querySelector("title"); // the browser's own tip would be a second one
            if (title !== null) {
                this.titles.set(e, title.textContent ?? "");
                title.remove();
            }
        });
        for (const name of ["x", "y"]) this.grids[name] = this.axisGroup(name).innerHTML;
    }

    private axisGroup(name: string): Element {
        return this.svg.querySelector(`.axis.${name}`)!;
    }

    private enliven(key: SVGElement): void {
        const members = (key.dataset["i"] ?? "").split(" ").map(Number);
        const toggle = (): void => {
            const off = !this.hidden.has(members[0]!);
            for (const i of members) {
                if (off) this.hidden.add(i);
                else this.hidden.delete(i);
                this.svg.querySelector(`.series[data-i="${i}"]`)?.classList.toggle("off", off);
            }
            key.classList.toggle("off", off);
            key.setAttribute("aria-pressed", String(!off));
        };
        key.setAttribute("tabindex", "0");
        key.setAttribute("role", "button");
        key.addEventListener("click", toggle);
        key.addEventListener("keydown", (e) => {
            if (e.key === "Enter" || e.key === " ") {
                e.preventDefault();
                toggle();
            }
        });
    }

    private at(e: PointerEvent): Point {
        const p = new DOMPoint(e.clientX, e.clientY).matrixTransform(this.svg.getScreenCTM()!.inverse());
        return { x: p.x, y: p.y };
    }

    private inside(p: Point): boolean {
        return p.x >= this.x.from && p.x <= this.x.to && p.y >= this.chart.top && p.y <= this.chart.bottom;
    }

    private move(e: PointerEvent): void {
        const p = this.at(e);
        if (this.drag !== null) return this.stretch(p);
        if (this.chart.kind === "lines") {
            const r = this.inside(p) ? readOut(this.chart, this.hidden, this.x, p.x) : null;
            if (r === null) return this.leave();
            this.showCursor(position(this.x, r.x));
            this.showTip(e, this.rowsOf(r));
        } else {
            const title = this.titles.get(e.target as Element);
            if (title === undefined) return this.leave();
            this.showTip(e, [title]);
        }
    }

    private rowsOf(r: ReadOut): string[] {
        const rows = r.rows.map((row) => `${this.chart.series[row.series]!.name}: ${row.text}`);
        return [`${this.chart.xLabel} ${numberText(r.x, 5)}`.trim(), ...rows];
    }

    private showCursor(x: number): void {
        this.cursor ??= make("path", { class: "cursor" }, this.svg);
        this.cursor.setAttribute("d", `M${x} ${this.chart.top}L${x} ${this.chart.bottom}`);
    }

    private showTip(e: PointerEvent, rows: string[]): void {
        const box = this.figure.getBoundingClientRect();
        this.tip.replaceChildren(...rows.map((text, i) => {
            const line = document.createElement(i === 0 && rows.length > 1 ? "b" : "div");
            line.textContent = text;
            return line;
        }));
        this.tip.hidden = false;
        const left = e.clientX - box.left > box.width / 2;
        this.tip.style.left = left ? "" : `${e.clientX - box.left + 16}px`;
        this.tip.style.right = left ? `${box.right - e.clientX + 16}px` : "";
        this.tip.style.top = `${e.clientY - box.top + 12}px`;
    }

    private leave(): void {
        this.tip.hidden = true;
        this.cursor?.remove();
        this.cursor = null;
    }

    private press(e: PointerEvent): void {
        const p = this.at(e);
        // A finger that is drawn over a chart scrolls the page.
        if (e.button !== 0 || e.pointerType === "touch" || this.chart.kind === "bars" || !this.inside(p)) return;
        e.preventDefault();
        this.svg.setPointerCapture(e.pointerId);
        this.leave();
        this.drag = { from: p, box: make("rect", { class: "drag" }, this.svg) };
    }

    /** The part that a drag to `p` chooses: of both axes, or of x alone when the drag is flat. */
    private chosen(p: Point): { x: [number, number]; y: [number, number] | null } {
        const from = this.drag!.from;
        const clamp = (v: number, lo: number, hi: number): number => Math.min(hi, Math.max(lo, v));
        const [a, b] = [from.x, clamp(p.x, this.x.from, this.x.to)];
        const [c, d] = [from.y, clamp(p.y, this.chart.top, this.chart.bottom)];
        const both = this.y !== undefined && Math.abs(c - d) > 3 * LEAST_DRAG;
        return { x: [Math.min(a, b), Math.max(a, b)], y: both ? [Math.min(c, d), Math.max(c, d)] : null };
    }

    private stretch(p: Point): void {
        const { x, y } = this.chosen(p);
        const [top, bottom] = y ?? [this.chart.top, this.chart.bottom];
        const shape = { x: x[0], width: x[1] - x[0], y: top, height: bottom - top };
        for (const [key, value] of Object.entries(shape)) this.drag!.box.setAttribute(key, String(value));
    }

    private release(e: PointerEvent): void {
        if (this.drag === null) return;
        const { x, y } = this.chosen(this.at(e));
        this.drag.box.remove();
        this.drag = null;
        if (x[1] - x[0] < LEAST_DRAG) return;
        this.zoom(zoomed(this.x, ...x), this.y !== undefined && y !== null ? zoomed(this.y, ...y) : this.y);
    }

    private forget(): void {
        this.drag?.box.remove();
        this.drag = null;
        this.leave();
    }

    private zoom(x: Axis, y: Axis | undefined): void {
        const { chart } = this;
        const mapX = (p: number): number => x.from + ((p - position(chart.x, x.lo)) * (x.to - x.from)) /
            (position(chart.x, x.hi) - position(chart.x, x.lo));
        const mapY = (p: number): number => chart.y === undefined || y === undefined ? p : y.from +
            ((p - position(chart.y, y.lo)) * (y.to - y.from)) / (position(chart.y, y.hi) - position(chart.y, y.lo));
        this.x = x;
        this.y = y;
        this.leave();
        this.drawn.forEach((kept, e) => {
            if (kept["d"] !== undefined) e.setAttribute("d", movePath(kept["d"], mapX, mapY));
            if (kept["cx"] !== undefined) e.setAttribute("cx", mapX(Number(kept["cx"])).toFixed(1));
            if (kept["cy"] !== undefined) e.setAttribute("cy", mapY(Number(kept["cy"])).toFixed(1));
            if (kept["width"] !== undefined) {
                const [from, to] = [Number(kept["x"]), Number(kept["x"]) + Number(kept["width"])];
                e.setAttribute("x", mapX(from).toFixed(2));
                e.setAttribute("width", (mapX(to) - mapX(from)).toFixed(2));
            }
        });
        this.drawAxis("x", x, x === chart.x);
        if (y !== undefined) this.drawAxis("y", y, y === chart.y);
    }

    private drawAxis(name: "x" | "y", a: Axis, whole: boolean): void {
        const group = this.axisGroup(name);
        if (whole) {
            group.innerHTML = this.grids[name]!; // what the program drew, names already escaped
            return;
        }
        const values = ticks(a, name === "x" ? 7 : 5);
        const texts = tickTexts(values);
        group.replaceChildren();
        values.forEach((v, i) => {
            const p = position(a, v);
            const { from, to } = this.x;
            make("path", { class: "grid", d: name === "x" ? `M${p} ${this.chart.top}L${p} ${this.chart.bottom}`
                : `M${from} ${p}L${to} ${p}` }, group);
            make("text", name === "x" ? { class: "mid", x: p, y: this.chart.bottom + 17 }
                : { class: "end", x: from - 8, y: p + 4 }, group).textContent = texts[i]!;
        });
    }
}

function addCopy(holder: HTMLElement): void {
    const button = document.createElement("button");
    button.className = "copy";
    button.textContent = "copy as CSV";
    button.addEventListener("click", () => {
        const rows = [...holder.querySelectorAll("tr")];
        const text = csvOf(rows.map((r) => [...r.cells].map((c) => c.textContent ?? "")));
        const say = (word: string): void => { button.textContent = word; };
        navigator.clipboard.writeText(text).then(() => say("copied"), () => say("not allowed here"));
    });
    holder.appendChild(button);
}

document.querySelectorAll<HTMLElement>("figure").forEach((figure) => {
    const data = figure.querySelector('script[type="application/json"]');
    if (data === null) return;
    const { views, ...chart } = JSON.parse(data.textContent ?? "") as Chart & { views: View[] };
    figure.querySelectorAll("svg").forEach((svg, k) => new Figure(figure, svg, { ...chart, ...views[k]! }));
});
document.querySelectorAll<HTMLElement>(".table").forEach(addCopy);
