import type { ReactNode } from "react";

import type { Run, RunMeasurement } from "../../api/queries";
import { Badge, SimulatedBadge, StatusBadge } from "../../ui/Badge";
import { formatError, formatLatency, formatShare, formatShareChange } from "../../ui/format";
import styles from "./LevelMatrix.module.css";

interface RunFact {
  name: string;
  show: (run: Run | undefined) => ReactNode;
}

/** The rows of the matrix about runs, in order. The first also tells how a run went. */
export const RUN_FACTS: readonly RunFact[] = [
  { name: "Ran on", show: (run) => (run ? <Outcome run={run} /> : "–") },
  { name: "Top-1", show: measured(topOne) },
  { name: "Agreement", show: measured(({ accuracy }) => shareOrDash(accuracy.agreement)) },
  {
    name: "Largest error",
    show: measured(({ accuracy }) => (
      <>
        {formatError(accuracy.max_abs_error)}
        <div className="soft tiny">{formatError(accuracy.max_rel_error)} of the range</div>
      </>
    )),
  },
  {
    name: "Latency",
    show: measured(({ latency }) => (
      <>
        {formatLatency(latency.median_us)}
        <div className="soft tiny">p90 {formatLatency(latency.p90_us)}</div>
        {latency.simulated && <SimulatedBadge />}
      </>
    )),
  },
];

function measured(show: (measurement: RunMeasurement) => ReactNode): RunFact["show"] {
  return (run) => (run?.measurement ? show(run.measurement) : "–");
}

function shareOrDash(share: number | null | undefined): string {
  return typeof share === "number" ? formatShare(share) : "–";
}

function Outcome({ run }: { run: Run }) {
  if (run.measurement) return <Engine measurement={run.measurement} />;
  return (
    <>
      <StatusBadge status={run.status} />
      {run.error && (
        <div className="tiny">
          {run.error.title} <code>{run.error.code}</code>
        </div>
      )}
    </>
  );
}

const ENGINES: Record<string, string> = { nnapi: "NNAPI", mixed: "NNAPI + CPU", cpu: "CPU" };

/** What computed the published numbers, and whether that was a fallback. */
export function Engine({ measurement }: { measurement: RunMeasurement }) {
  const { engine, cpu_variant: variant, fallbacks, valid } = measurement;
  return (
    <>
      <Badge tone={engine === "cpu" ? "cpu" : "nnapi"}>{ENGINES[engine] ?? engine}</Badge>
      {variant && <div className="soft tiny">CPU code for {variant}</div>}
      {fallbacks.map((fallback) => (
        <div key={fallback.code + fallback.detail} className="tiny" title={fallback.detail}>
          fell back: <code>{fallback.code}</code>
        </div>
      ))}
      {!valid && (
        <div>
          <Badge tone="bad">not valid</Badge>
        </div>
      )}
    </>
  );
}

function topOne({ accuracy: { top1, original_top1: original } }: RunMeasurement): ReactNode {
  if (typeof top1 !== "number") return "–";
  if (typeof original !== "number") return formatShare(top1);
  return (
    <>
      {formatShare(original)} → {formatShare(top1)}
      {top1 !== original && (
        <div className={`tiny ${(top1 < original ? styles.worse : "soft") ?? ""}`}>
          {formatShareChange(original, top1)}
        </div>
      )}
    </>
  );
}
