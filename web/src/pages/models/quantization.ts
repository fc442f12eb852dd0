import type { Quantization } from "../../api/queries";
import { formatShare } from "../../ui/format";

type Cost = Quantization["cost"];

/** What quantization cost, and of what: `0.5 % of top-1`. */
export function lossText(cost: Cost): string {
  if (!cost) return "–";
  if (cost.loss === null) return "not known";
  return `${formatShare(cost.loss)} of ${cost.float_top1 === null ? "agreement" : "top-1"}`;
}

/** Top-1 before and after: `98.5 % → 98 %`. */
export function top1Text(cost: Cost): string {
  const before = cost?.float_top1 ?? null;
  const after = cost?.quantized_top1 ?? null;
  if (before === null || after === null) return "–";
  return `${formatShare(before)} → ${formatShare(after)}`;
}

/** Options that are worth a glance: `entropy, int8, per channel, 2 excluded`. */
export function optionsText(options: Quantization["options"]): string {
  const { activation, weight, exclude_nodes: excluded } = options;
  const words = [
    options.method,
    activation === weight ? activation : `${activation}/${weight}`,
    options.per_channel ? "per channel" : "per tensor",
  ];
  if (excluded.length > 0) words.push(`${excluded.length} excluded`);
  return words.join(", ");
}
