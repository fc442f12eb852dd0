import { describe, expect, it } from "vitest";

import type { Quantization } from "../../api/queries";
import { lossText, optionsText, top1Text } from "./quantization";

type Cost = NonNullable<Quantization["cost"]>;

const COST: Cost = {
  sample_count: 200,
  float_top1: 0.985,
  quantized_top1: 0.98,
  agreement: 0.99,
  loss: 0.005,
  max_abs_error: 1,
  max_rel_error: 0.1,
};

describe("cost", () => {
  it("says what is lost, and of what", () => {
    expect(lossText(COST)).toBe("0.5 % of top-1");
    expect(top1Text(COST)).toBe("98.5 % → 98 %");
  });

  it("falls back to agreement where there are no labels", () => {
    const unlabelled = { ...COST, float_top1: null, quantized_top1: null, loss: 0.01 };
    expect(lossText(unlabelled)).toBe("1 % of agreement");
    expect(top1Text(unlabelled)).toBe("–");
  });

  it("does not take an unknown loss for none", () => {
    expect(lossText({ ...COST, loss: null })).toBe("not known");
    expect(lossText(null)).toBe("–");
  });
});

describe("options", () => {
  const options: Quantization["options"] = {
    method: "minmax",
    percentile: 99.999,
    per_channel: true,
    activation: "int8",
    weight: "int8",
    exclude_nodes: [],
  };

  it("are named shortly", () => {
    expect(optionsText(options)).toBe("minmax, int8, per channel");
    const other = {
      ...options,
      activation: "uint8" as const,
      per_channel: false,
      exclude_nodes: ["a"],
    };
    expect(optionsText(other)).toBe("minmax, uint8/int8, per tensor, 1 excluded");
  });
});
