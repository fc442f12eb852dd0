import { describe, expect, it } from "vitest";

import {
  formatAgo,
  formatBytes,
  formatDuration,
  formatError,
  formatLatency,
  formatShare,
  formatShareChange,
  shortHash,
} from "./format";

describe("formatBytes", () => {
  it.each([
    [0, "0 B"],
    [1023, "1023 B"],
    [1024, "1.00 KiB"],
    [13_976_064, "13.3 MiB"],
    [234_000_000, "223 MiB"],
    [5 * 2 ** 40, "5120 GiB"],
  ])("%d bytes is %s", (bytes, text) => {
    expect(formatBytes(bytes)).toBe(text);
  });
});

describe("formatLatency", () => {
  it.each([
    [0, "0 µs"],
    [0.5, "0.50 µs"],
    [299.04, "299 µs"],
    [5321, "5.32 ms"],
    [31_000, "31.0 ms"],
    [1_204_000, "1.20 s"],
  ])("%d µs is %s", (us, text) => {
    expect(formatLatency(us)).toBe(text);
  });
});

describe("formatDuration", () => {
  it.each([
    [0, "0.0 s"],
    [4.21, "4.2 s"],
    [9.96, "10 s"],
    [59.6, "1 min 00 s"],
    [185, "3 min 05 s"],
    [8060, "2 h 14 min"],
  ])("%d s is %s", (seconds, text) => {
    expect(formatDuration(seconds)).toBe(text);
  });
});

describe("formatShare", () => {
  it("never rounds a miss up to all", () => {
    expect(formatShare(1)).toBe("100 %");
    expect(formatShare(0.99999)).toBe("99.9 %");
    expect(formatShare(0.953125)).toBe("95.3 %");
    expect(formatShare(0)).toBe("0 %");
  });
});

describe("formatShareChange", () => {
  it("has a sign and says when nothing changed", () => {
    expect(formatShareChange(0.953125, 0.9375)).toBe("−1.6 pp");
    expect(formatShareChange(0.5, 0.75)).toBe("+25.0 pp");
    expect(formatShareChange(0.5, 0.5)).toBe("±0 pp");
  });
});

describe("formatError", () => {
  it.each([
    [0, "0"],
    [4.7e-4, "4.7e-4"],
    [0.0312, "0.031"],
    [12.4, "12"],
  ])("%d is %s", (value, text) => {
    expect(formatError(value)).toBe(text);
  });
});

describe("formatAgo", () => {
  const now = new Date("2026-03-02T12:00:00Z");
  it.each([
    ["2026-03-02T11:59:50Z", "just now"],
    ["2026-03-02T12:00:30Z", "just now"],
    ["2026-03-02T11:56:00Z", "4 min ago"],
    ["2026-03-02T09:00:00Z", "3 h ago"],
    ["2026-03-01T11:00:00Z", "1 day ago"],
    ["2026-02-20T12:00:00Z", "10 days ago"],
  ])("%s is %s", (then, text) => {
    expect(formatAgo(new Date(then), now)).toBe(text);
  });
});

describe("shortHash", () => {
  it("keeps twelve digits", () => {
    expect(shortHash("0123456789abcdef")).toBe("0123456789ab");
  });
});
