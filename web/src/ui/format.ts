// Numbers and times as the page writes them. Every function names its unit in the text it returns.

const MINUTE_S = 60;
const HOUR_S = 3600;
const DAY_S = 86_400;

/** Up to three significant digits, never in exponent form above 0.001. */
function significant(value: number): string {
  const digits = value === 0 ? 0 : Math.max(0, 2 - Math.floor(Math.log10(Math.abs(value))));
  return value.toFixed(Math.min(digits, 2));
}

/** Bytes in binary units, as package managers show them: `1.23 MiB`. */
export function formatBytes(sizeBytes: number): string {
  const units = ["B", "KiB", "MiB", "GiB"];
  let size = sizeBytes;
  let unit = 0;
  while (size >= 1024 && unit < units.length - 1) {
    size /= 1024;
    unit += 1;
  }
  return unit === 0 ? `${size} B` : `${significant(size)} ${units[unit] ?? ""}`;
}

/** A latency in microseconds, in the unit that keeps it readable: `812 µs`, `5.32 ms`, `1.20 s`. */
export function formatLatency(latencyUs: number): string {
  if (latencyUs < 1000) return `${significant(latencyUs)} µs`;
  if (latencyUs < 1_000_000) return `${significant(latencyUs / 1000)} ms`;
  return `${significant(latencyUs / 1_000_000)} s`;
}

/** A duration in seconds: `4.2 s`, `3 min 05 s`, `2 h 14 min`. */
export function formatDuration(durationS: number): string {
  if (durationS < 9.95) return `${durationS.toFixed(1)} s`;
  const whole = Math.round(durationS);
  if (whole < MINUTE_S) return `${whole} s`;
  const pad = (value: number) => String(value).padStart(2, "0");
  if (whole < HOUR_S) return `${Math.floor(whole / MINUTE_S)} min ${pad(whole % MINUTE_S)} s`;
  const minutes = Math.floor((whole % HOUR_S) / MINUTE_S);
  return `${Math.floor(whole / HOUR_S)} h ${pad(minutes)} min`;
}

/** A share of 1 in percent: `95.3 %`; 100 is shown only when it is exactly all. */
export function formatShare(share: number): string {
  const percent = share * 100;
  const rounded = percent.toFixed(1);
  if (rounded === "100.0" && share < 1) return "99.9 %";
  return `${rounded.replace(/\.0$/, "")} %`;
}

/** The difference of two shares in percentage points, with its sign: `−1.6 pp`. */
export function formatShareChange(from: number, to: number): string {
  const points = (to - from) * 100;
  if (Math.abs(points) < 0.05) return "±0 pp";
  return `${points < 0 ? "−" : "+"}${Math.abs(points).toFixed(1)} pp`;
}

/** An error bound, which may be tiny: `4.7e-4`, `0.031`, `0`. */
export function formatError(value: number): string {
  if (value === 0) return "0";
  return Math.abs(value) < 0.01 ? value.toExponential(1) : value.toPrecision(2);
}

/** How long ago a moment was: `just now`, `4 min ago`, `3 days ago`. */
export function formatAgo(then: Date, now: Date): string {
  const agoS = (now.getTime() - then.getTime()) / 1000;
  if (agoS < 45) return "just now";
  if (agoS < HOUR_S) return `${Math.max(1, Math.round(agoS / MINUTE_S))} min ago`;
  if (agoS < DAY_S) return `${Math.round(agoS / HOUR_S)} h ago`;
  const days = Math.round(agoS / DAY_S);
  return days === 1 ? "1 day ago" : `${days} days ago`;
}

/** The first digits of a hash, enough to tell two models apart by eye. */
export function shortHash(sha256: string): string {
  return sha256.slice(0, 12);
}
