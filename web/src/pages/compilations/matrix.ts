import type { ArtifactSummary, Compilation, Device, Run } from "../../api/queries";

/** The runs of one device, or those that no device has taken yet, over the levels. */
export interface DeviceRuns {
  key: string;
  device: Device | null;
  runByLevel: ReadonlyMap<number, Run>;
}

/** One ABI of a compilation: its artifacts by level and what each device made of them. */
export interface AbiGroup {
  abi: string;
  artifactByLevel: ReadonlyMap<number, ArtifactSummary>;
  devices: DeviceRuns[];
}

export interface Matrix {
  levels: number[];
  groups: AbiGroup[];
}

/** Puts artifacts and runs side by side: a column a level, a group an ABI, a block a device. */
export function buildMatrix(artifacts: Compilation["artifacts"], runs: readonly Run[]): Matrix {
  const levels = [...new Set(artifacts.map((one) => one.feature_level))].sort((a, b) => a - b);
  const abis = [...new Set(artifacts.map((one) => one.abi))];
  return { levels, groups: abis.map((abi) => buildGroup(abi, artifacts, runs)) };
}

function buildGroup(
  abi: string,
  artifacts: readonly ArtifactSummary[],
  runs: readonly Run[],
): AbiGroup {
  const own = artifacts.filter((one) => one.abi === abi);
  const artifactByLevel = new Map(own.map((one) => [one.feature_level, one]));
  const levelById = new Map(own.map((one) => [one.id, one.feature_level]));
  const blocks = new Map<string, { device: Device | null; runByLevel: Map<number, Run> }>();
  for (const run of runs) {
    const level = levelById.get(run.artifact_id);
    if (level === undefined) continue;
    const key = run.device?.id ?? "";
    const block = blocks.get(key) ?? { device: run.device ?? null, runByLevel: new Map() };
    // Runs come newest first: an older run of the same artifact does not hide a newer one.
    if (!block.runByLevel.has(level)) block.runByLevel.set(level, run);
    blocks.set(key, block);
  }
  const devices = [...blocks].map(([key, block]) => ({ key, ...block }));
  devices.sort((a, b) => deviceOrder(a.device) - deviceOrder(b.device));
  return { abi, artifactByLevel, devices };
}

function deviceOrder(device: Device | null): number {
  return device === null ? Infinity : device.description.feature_level;
}
