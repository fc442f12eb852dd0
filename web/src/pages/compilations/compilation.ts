import type { Compilation } from "../../api/queries";

export interface Targets {
  levels: number[];
  abis: string[];
}

/** The levels and ABIs a compilation was asked for. */
export function targetsOf(compilation: Compilation): Targets {
  return {
    levels: [...compilation.levels].sort((a, b) => a - b),
    abis: [...compilation.abis],
  };
}

/** Wall time from the worker's start to the end; null before it. */
export function durationS({ started_at, finished_at }: Compilation): number | null {
  if (!started_at || !finished_at) return null;
  return (Date.parse(finished_at) - Date.parse(started_at)) / 1000;
}
