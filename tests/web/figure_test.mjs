// figure_test.mjs: the arithmetic of the pages' script (web/figure.ts, bundled to the file that is named), against values
// computed by hand.  Run by test_figure.sh.
import assert from "node:assert/strict";
import { pathToFileURL } from "node:url";

const f = await import(pathToFileURL(process.argv[2]).href);
const linear = { base: 0, lo: 0, hi: 10, from: 100, to: 200 };
const log2 = { base: 2, lo: 1, hi: 16, from: 0, to: 400 };
const near = (a, b) => assert.ok(Math.abs(a - b) < 1e-9 * (1 + Math.abs(b)), `${a} is not ${b}`);
let n = 0;
const test = (name, body) => { body(); n++; console.log(`${name}: ok`); };

test("values and pixels are each other's reverse", () => {
    near(f.position(linear, 5), 150);
    near(f.position(log2, 4), 200);
    for (const a of [linear, log2]) for (const v of [1, 2.5, 9]) near(f.valueAt(a, f.position(a, v)), v);
});
test("a part of an axis lies where the axis was", () => {
    const z = f.zoomed(linear, 180, 120); // in any order
    assert.deepEqual([z.from, z.to], [100, 200]);
    near(z.lo, 2);
    near(z.hi, 8);
    near(f.position(z, 5), 150);
});
test("ticks are round", () => {
    assert.deepEqual(f.ticks(linear, 5), [0, 2, 4, 6, 8, 10]);
    assert.deepEqual(f.ticks({ ...linear, lo: 0.13, hi: 0.62 }, 5), [0.2, 0.3, 0.4, 0.5, 0.6]);
    assert.deepEqual(f.ticks(log2, 7), [1, 2, 4, 8, 16]);
    assert.deepEqual(f.ticks({ ...log2, lo: 4, hi: 6 }, 4), [4, 4.5, 5, 5.5, 6]);
    assert.deepEqual(f.ticks({ ...linear, lo: 3, hi: 3 }, 5), []);
});
test("numbers are short", () => {
    const cases = [[1234567, 4, "1,234,567"], [0.98765, 3, "0.988"], [25, 4, "25"], [-9876.5, 3, "-9,877"], [3e-5, 3, "3e-5"],
        [2.5e13, 3, "2.5e13"], [0, 3, "0"]];
    for (const [v, digits, text] of cases) assert.equal(f.numberText(v, digits), text);
    assert.deepEqual(f.tickTexts([0, 0.5, 1, 1.5]), ["0", "0.5", "1", "1.5"]);
    assert.deepEqual(f.tickTexts([10000, 20000]), ["10,000", "20,000"]);
    assert.deepEqual(f.tickTexts([100.1, 100.2]), ["100.1", "100.2"]);
});
test("paths move point by point", () => {
    assert.equal(f.movePath("M1.0 2.0L-3.5 4.0M5.0 6.0Z", (x) => 2 * x, (y) => y + 1), "M2.0 3.0L-7.0 5.0M10.0 7.0Z");
});
const chart = {
    kind: "lines", x: linear, y: linear, top: 0, bottom: 100, xLabel: "ranks", flag: "oversubscribed",
    series: [
        { name: "a", x: [1, 2, 4], y: [10, null, 40], lo: [9, null, 38], hi: [11, null, 44], flag: [0, 0, 1] },
        { name: "b", x: [1, 2, 4], y: [5, 6, 7] },
        { name: "far", x: [9], y: [1] },
    ],
};
test("the nearest point that can be seen", () => {
    assert.equal(f.nearest(chart.series[0], linear, f.position(linear, 2)), 0); // its own value there is missing
    assert.equal(f.nearest(chart.series[1], linear, f.position(linear, 2.1)), 1);
    assert.equal(f.nearest(chart.series[1], f.zoomed(linear, 130, 190), 110), 2);
    assert.equal(f.nearest({ name: "none", x: [], y: [] }, linear, 150), -1);
});
test("the read-out names values, spread and flags of all that are near", () => {
    const all = f.readOut(chart, new Set(), linear, 141);
    assert.equal(all.x, 4);
    assert.deepEqual(all.rows, [{ series: 0, text: "40 (38 to 44), oversubscribed" }, { series: 1, text: "7" }]);
    assert.deepEqual(f.readOut(chart, new Set([0, 1]), linear, 141).rows, [{ series: 2, text: "1" }]);
    assert.equal(f.readOut(chart, new Set([0, 1, 2]), linear, 141), null);
});
test("CSV is quoted where it must be", () => {
    assert.equal(f.csvOf([["a", 'b"c'], ["1,5", "x\ny"], ["-12,345.6", "1,000,000"]]),
        'a,"b""c"\r\n"1,5","x\ny"\r\n-12345.6,1000000\r\n');
});
test("CSV holds no formulas", () => {
    assert.equal(f.csvOf([["=1+1", "-x", "-0.5", "@a"], ["+1e-5", "-2+3", "-1,234", "-"]]),
        "'=1+1,'-x,-0.5,'@a\r\n+1e-5,'-2+3,-1234,-\r\n");
});
assert.equal(n, 9);
