import type { ExplanationReport, OperationReport } from "../../api/queries";
import { levelRanges } from "../../ui/levels";

/** One operation of the model and what became of it at each level. */
export interface OperationRow {
  key: string;
  name: string;
  opType: string;
  byLevel: ReadonlyMap<number, OperationReport>;
}

/**
 * One row an operation over the reports of all levels, in graph order.
 *
 * A name may occur more than once in a graph; the n-th occurrence at one level is the n-th at the
 * others. An operation that only a later report has comes after its predecessor there.
 */
export function mergeReports(reports: readonly ExplanationReport[]): OperationRow[] {
  const rows: { key: string; first: OperationReport; byLevel: Map<number, OperationReport> }[] = [];
  const positions = new Map<string, number>();
  const reindex = () => {
    rows.forEach((row, index) => positions.set(row.key, index));
  };
  for (const report of reports) {
    const occurrences = new Map<string, number>();
    let previous = -1;
    for (const operation of report.operations) {
      const occurrence = occurrences.get(operation.name) ?? 0;
      occurrences.set(operation.name, occurrence + 1);
      const key = `${operation.name}#${occurrence}`;
      let position = positions.get(key);
      if (position === undefined) {
        position = previous + 1;
        rows.splice(position, 0, { key, first: operation, byLevel: new Map() });
        if (position === rows.length - 1) positions.set(key, position);
        else reindex();
      }
      rows[position]?.byLevel.set(report.feature_level, operation);
      previous = position;
    }
  }
  return rows.map(({ key, first, byLevel }) => ({
    key,
    name: first.name,
    opType: first.op_type,
    byLevel,
  }));
}

export interface OperationFilter {
  text: string;
  onlyCpu: boolean;
}

/** Rows that match a search, over names, types, NNAPI operations and reasons. */
export function filterRows(rows: readonly OperationRow[], filter: OperationFilter): OperationRow[] {
  const wanted = filter.text.trim().toLowerCase();
  return rows.filter((row) => {
    const reports = [...row.byLevel.values()];
    if (filter.onlyCpu && !reports.some((one) => one.placement === "cpu")) return false;
    const texts = reports.flatMap((one) => [
      ...one.nnapi_operations,
      one.rejection?.code ?? "",
      one.rejection?.sentence ?? "",
      one.note ?? "",
    ]);
    return [row.name, row.opType, ...texts].some((text) => text.toLowerCase().includes(wanted));
  });
}

export interface Reason {
  levels: string;
  code: string;
  sentence: string;
}

/**
 * Why an operation stays on the CPU, one entry a cause.
 *
 * A sentence may name the level that was asked for, so entries are told apart by code and needed
 * level; the sentence shown is the one of the highest level, the closest to being offloaded.
 */
export function reasonsOf(row: OperationRow): Reason[] {
  const causes = new Map<string, { levels: number[]; code: string; sentence: string }>();
  for (const [level, { rejection }] of row.byLevel) {
    if (!rejection) continue;
    const key = `${rejection.code} ${rejection.needed_level ?? ""}`;
    const levels = [...(causes.get(key)?.levels ?? []), level];
    causes.set(key, { levels, code: rejection.code, sentence: rejection.sentence });
  }
  return [...causes.values()].map((one) => ({ ...one, levels: levelRanges(one.levels) }));
}

/** What the artifacts do otherwise than the model's own runtime may, each sentence once. */
export function notesOf(row: OperationRow): string[] {
  const notes = [...row.byLevel.values()].map((one) => one.note ?? "");
  return [...new Set(notes.filter(Boolean))];
}
