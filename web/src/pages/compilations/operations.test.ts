import { describe, expect, it } from "vitest";

import type { ExplanationReport, OperationReport } from "../../api/queries";
import { filterRows, mergeReports, notesOf, reasonsOf } from "./operations";

/** Costs play no part here. */
const FREE = { macs: 0, size_bytes: 0 };

function onNnapi(name: string, nnapi: string): OperationReport {
  return {
    name,
    op_type: "Conv",
    placement: "nnapi",
    subgraph: 0,
    nnapi_operations: [nnapi],
    rejection: null,
    ...FREE,
  };
}

function onCpu(name: string, code: string, sentence: string, level: number | null = null) {
  return {
    name,
    op_type: "Erf",
    placement: "cpu" as const,
    subgraph: null,
    nnapi_operations: [],
    rejection: { code, sentence, needed_level: level },
    ...FREE,
  };
}

function report(level: number, operations: OperationReport[]): ExplanationReport {
  return {
    feature_level: level,
    operations,
    offloaded_count: 0,
    operation_count: operations.length,
    subgraph_count: 1,
    ...FREE,
    offloaded_macs: 0,
    offloaded_bytes: 0,
    what_if: [],
  };
}

describe("mergeReports", () => {
  it("gives one row an operation in graph order", () => {
    const rows = mergeReports([
      report(1, [onNnapi("a", "CONV_2D"), onCpu("b", "nnapi.needs_level", "needs 4", 4)]),
      report(4, [onNnapi("a", "CONV_2D"), onNnapi("b", "HARD_SWISH")]),
    ]);
    expect(rows.map((row) => row.name)).toEqual(["a", "b"]);
    expect(rows[1]?.byLevel.get(1)?.placement).toBe("cpu");
    expect(rows[1]?.byLevel.get(4)?.placement).toBe("nnapi");
  });

  it("tells operations of the same name apart by their order", () => {
    const rows = mergeReports([
      report(1, [onNnapi("a", "ADD"), onNnapi("a", "MUL")]),
      report(2, [onNnapi("a", "ADD"), onNnapi("a", "MUL")]),
    ]);
    expect(rows).toHaveLength(2);
    expect(rows[1]?.byLevel.get(2)?.nnapi_operations).toEqual(["MUL"]);
  });

  it("puts an operation that only one level has after its predecessor", () => {
    const rows = mergeReports([
      report(1, [onNnapi("a", "ADD"), onNnapi("c", "MUL")]),
      report(2, [onNnapi("a", "ADD"), onNnapi("b", "SUB"), onNnapi("c", "MUL")]),
    ]);
    expect(rows.map((row) => row.name)).toEqual(["a", "b", "c"]);
    expect(rows[1]?.byLevel.has(1)).toBe(false);
    expect(rows[2]?.byLevel.get(2)?.nnapi_operations).toEqual(["MUL"]);
  });
});

describe("filterRows", () => {
  const rows = mergeReports([
    report(1, [
      onNnapi("/stem/Conv", "CONV_2D"),
      onCpu("/head/Erf", "nnapi.none", "No such thing."),
    ]),
  ]);

  it("keeps what stays on the CPU", () => {
    const kept = filterRows(rows, { text: "", onlyCpu: true });
    expect(kept.map((row) => row.name)).toEqual(["/head/Erf"]);
  });

  it.each([
    ["STEM", "/stem/Conv"],
    ["conv_2d", "/stem/Conv"],
    ["no such", "/head/Erf"],
    [" nnapi.none ", "/head/Erf"],
  ])("finds %j", (text, name) => {
    expect(filterRows(rows, { text, onlyCpu: false }).map((row) => row.name)).toEqual([name]);
  });

  it("finds nothing where nothing matches", () => {
    expect(filterRows(rows, { text: "gru", onlyCpu: false })).toEqual([]);
  });
});

describe("reasonsOf", () => {
  it("joins levels of one cause and keeps causes apart", () => {
    const rows = mergeReports([
      report(1, [onCpu("a", "nnapi.needs_level", "needs 3; 1 was asked", 3)]),
      report(2, [onCpu("a", "nnapi.needs_level", "needs 3; 2 was asked", 3)]),
      report(3, [onCpu("a", "nnapi.bad_rank", "rank 5")]),
      report(4, [onNnapi("a", "ADD")]),
    ]);
    const [row] = rows;
    expect(row && reasonsOf(row)).toEqual([
      { levels: "1–2", code: "nnapi.needs_level", sentence: "needs 3; 2 was asked" },
      { levels: "3", code: "nnapi.bad_rank", sentence: "rank 5" },
    ]);
  });
});

describe("notesOf", () => {
  it("says each sentence once, and the search finds it", () => {
    const note = "Its state begins with zeros in every run.";
    const rows = mergeReports([
      report(1, [{ ...onNnapi("a", "TANH"), note }, onNnapi("b", "ADD")]),
      report(4, [{ ...onNnapi("a", "TANH"), note }, onNnapi("b", "ADD")]),
    ]);
    expect(rows.map(notesOf)).toEqual([[note], []]);
    expect(filterRows(rows, { text: "zeros", onlyCpu: false })).toHaveLength(1);
  });
});
