/** Android releases that brought each NNAPI feature level (service/contracts/targets.py). */
export const ANDROID_BY_LEVEL: Readonly<Record<number, string>> = {
  1: "Android 8.1",
  2: "Android 9",
  3: "Android 10",
  4: "Android 11",
  5: "Android 12",
  6: "updatable",
  7: "updatable",
  8: "updatable",
};

export const LEVELS: readonly number[] = Object.keys(ANDROID_BY_LEVEL).map(Number);

/** Levels as runs: `1–4, 7`. */
export function levelRanges(levels: readonly number[]): string {
  const sorted = [...new Set(levels)].sort((a, b) => a - b);
  const ranges: [number, number][] = [];
  for (const level of sorted) {
    const last = ranges.at(-1);
    if (last?.[1] === level - 1) last[1] = level;
    else ranges.push([level, level]);
  }
  return ranges.map(([from, to]) => (from === to ? `${from}` : `${from}–${to}`)).join(", ");
}
