import type { Tuning } from "../../api/queries";

type Times = Pick<Tuning, "before" | "after">;
type Place = Pick<Tuning, "abi" | "device">;

/** Where kernels are measured: `x86_64, the worker`, `arm64-v8a, Pixel 7`. */
export function placeText({ abi, device }: Place): string {
  const name = device === null ? "the worker" : device.name;
  const place = abi === null ? name : `${abi}, ${name}`;
  return device?.simulated ? `${place} (simulated)` : place;
}

/** Kernels with a faster schedule, of those measured: `5 of 12`. */
export function keptText(records: Tuning["records"]): string {
  if (records.length === 0) return "–";
  if (records.some(({ simulated }) => simulated)) {
    return `${String(records.length)} simulated`;
  }
  return `${String(records.filter(({ is_kept }) => is_kept).length)} of ${String(records.length)}`;
}

/** The greatest gain of a kernel that was kept: `13 % in conv2d`. */
export function bestText(records: Tuning["records"]): string {
  const gains = records.flatMap(({ is_kept, kernel, before, after }) =>
    is_kept && after ? [{ kernel, gain: 1 - after.median_us / before.median_us }] : [],
  );
  if (gains.length === 0) return "–";
  const best = gains.reduce((a, b) => (b.gain > a.gain ? b : a));
  return `${String(Math.round(100 * best.gain))} % in ${best.kernel}`;
}

/** The whole model before and after, each with its spread: `20.64 ± 0.87 → 19.83 ± 0.46 ms`. */
export function timesText({ before, after }: Times): string {
  if (!before || !after) return "not measured";
  const [first, second] = [before, after].map(
    ({ median_us, spread_us }) =>
      `${(median_us / 1000).toFixed(2)} ± ${(spread_us / 1000).toFixed(2)}`,
  );
  return `${first ?? ""} → ${second ?? ""} ms`;
}
