// report.ts: what a report's page does when a reader points, clicks or drags.
export {};
