import { expect, it } from "vitest";

import type { ArtifactSummary, Device, Run } from "../../api/queries";
import { buildMatrix } from "./matrix";

function artifact(level: number, abi: ArtifactSummary["abi"]): ArtifactSummary {
  return {
    id: `${abi}-${level}`,
    feature_level: level,
    abi,
    size_bytes: 1,
    needed_level: level,
    offloaded_count: 1,
    operation_count: 2,
    subgraph_count: 1,
  };
}

function device(id: string, level: number): Device {
  return {
    id,
    name: id,
    state: "online",
    agent_name: "bench-1",
    last_seen_at: "2026-03-02T09:00:00Z",
    description: {
      serial: id,
      name: id,
      model: "",
      abis: ["x86_64"],
      sdk_level: 30,
      feature_level: level,
      accelerators: [],
      cpu_variants: [],
      simulated: true,
      reason_unusable: "",
    },
  };
}

function run(id: string, artifactId: string, on: Device | null): Run {
  return { id, artifact_id: artifactId, device: on, status: "queued", attempt: 1 } as Run;
}

const ARTIFACTS = [artifact(4, "x86_64"), artifact(1, "x86_64"), artifact(1, "arm64-v8a")];

it("sorts levels and groups artifacts by ABI", () => {
  const { levels, groups } = buildMatrix(ARTIFACTS, []);
  expect(levels).toEqual([1, 4]);
  expect(groups.map((group) => group.abi)).toEqual(["x86_64", "arm64-v8a"]);
  expect(groups[1]?.artifactByLevel.has(4)).toBe(false);
});

it("makes one block a device, by its level, and puts unassigned runs last", () => {
  const runs = [
    run("a", "x86_64-1", null),
    run("b", "x86_64-1", device("high", 7)),
    run("c", "x86_64-4", device("low", 1)),
    run("d", "arm64-v8a-1", device("other", 4)),
  ];
  const [group, arm] = buildMatrix(ARTIFACTS, runs).groups;
  expect(group?.devices.map((block) => block.key)).toEqual(["low", "high", ""]);
  expect(group?.devices[0]?.runByLevel.get(4)?.id).toBe("c");
  expect(arm?.devices.map((block) => block.key)).toEqual(["other"]);
});

it("shows the newest of several runs of one artifact on one device", () => {
  const phone = device("phone", 4);
  const runs = [run("new", "x86_64-1", phone), run("old", "x86_64-1", phone)];
  const [group] = buildMatrix(ARTIFACTS, runs).groups;
  expect(group?.devices[0]?.runByLevel.get(1)?.id).toBe("new");
});
