import { describe, expect, it } from "vitest";

import type { Tuning } from "../../api/queries";
import { bestText, keptText, placeText, timesText } from "./tuning";

type TuningRecord = Tuning["records"][number];

function record(kernel: string, is_kept: boolean, after: number | null): TuningRecord {
  return {
    id: `ktr_${kernel}`,
    abi: "x86_64",
    signature: "5",
    kernel,
    calls: 1,
    is_kept,
    before: { median_us: 100, spread_us: 1 },
    after: after === null ? null : { median_us: after, spread_us: 1 },
    rounds: 21,
    tried: 20,
    machine: "a processor",
    simulated: false,
    created_at: "2026-01-01T00:00:00Z",
  };
}

describe("kernels", () => {
  const records = [
    record("conv2d", true, 95),
    record("matmul", true, 80),
    record("softmax", false, 60),
    record("pool", false, null),
  ];

  it("are counted, and the greatest gain that was kept is named", () => {
    expect(keptText(records)).toBe("2 of 4");
    expect(bestText(records)).toBe("20 % in matmul");
  });

  it("say nothing where there is nothing", () => {
    expect(keptText([])).toBe("–");
    expect(bestText(records.slice(2))).toBe("–");
  });
});

describe("the place", () => {
  it("is the worker or a device, and says when its times are simulated", () => {
    const phone = { id: "dev_1", name: "Pixel 7", simulated: false };
    expect(placeText({ abi: "x86_64", device: null })).toBe("x86_64, the worker");
    expect(placeText({ abi: "arm64-v8a", device: phone })).toBe("arm64-v8a, Pixel 7");
    expect(placeText({ abi: null, device: { ...phone, simulated: true } })).toBe(
      "Pixel 7 (simulated)",
    );
    expect(keptText([{ ...record("conv2d", false, 95), simulated: true }])).toBe("1 simulated");
  });
});

describe("times of the whole model", () => {
  it("have their spread", () => {
    const before = { median_us: 20_640, spread_us: 870 };
    const after = { median_us: 19_830, spread_us: 455 };
    expect(timesText({ before, after })).toBe("20.64 ± 0.87 → 19.83 ± 0.46 ms");
  });

  it("are not made up", () => {
    expect(timesText({ before: null, after: null })).toBe("not measured");
  });
});
