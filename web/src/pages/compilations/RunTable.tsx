import type { Compilation, Run, RunMeasurement } from "../../api/queries";
import { Badge, SimulatedBadge, StatusBadge } from "../../ui/Badge";
import { Command, EmptyState } from "../../ui/EmptyState";
import { formatBytes, formatLatency } from "../../ui/format";
import { Panel, ScrollRegion } from "../../ui/Section";
import { LatencyPlot } from "./LatencyPlot";
import { Engine } from "./run_facts";
import styles from "./RunTable.module.css";

interface RunTableProps {
  artifacts: Compilation["artifacts"];
  runs: readonly Run[];
}

/** Every run of a compilation, with its raw latency samples. */
export function RunTable({ artifacts, runs }: RunTableProps) {
  if (runs.length === 0) {
    return (
      <Panel>
        <EmptyState title="No run was asked for">
          <p>Run an artifact on any device that fits:</p>
          <Command text={runCommand(artifacts[0]?.id ?? "<artifact id>")} />
        </EmptyState>
      </Panel>
    );
  }
  return (
    <Panel>
      <ScrollRegion label="Runs">
        <table className={styles.table}>
          <thead>
            <tr>
              <th scope="col">Device</th>
              <th scope="col">Artifact</th>
              <th scope="col">Status</th>
              <th scope="col">Ran on</th>
              <th scope="col">Latency</th>
              <th scope="col">Samples</th>
              <th scope="col">Start-up</th>
              <th scope="col">Fallbacks and notes</th>
            </tr>
          </thead>
          <tbody>
            {runs.map((run) => (
              <Row key={run.id} run={run} />
            ))}
          </tbody>
        </table>
      </ScrollRegion>
    </Panel>
  );
}

function runCommand(artifactId: string): string {
  const body = JSON.stringify({ artifact_id: artifactId, device_id: "any" });
  return `curl -X POST ${window.location.origin}/v1/runs -H 'Content-Type: application/json' -d '${body}'`;
}

function Row({ run }: { run: Run }) {
  const { device, measurement } = run;
  return (
    <tr>
      <th scope="row">
        <span className={styles.device}>
          {device?.description.name ?? "not assigned"}
          {device?.description.simulated && <Badge tone="cpu">virtual</Badge>}
        </span>
        <span className="soft tiny mono">{run.id}</span>
      </th>
      <td>
        Level {run.feature_level}
        <div className="soft tiny">{run.abi}</div>
      </td>
      <td>
        <StatusBadge status={run.status} />
        {run.attempt > 1 && <div className="soft tiny">attempt {run.attempt}</div>}
      </td>
      {measurement ? (
        <Measured measurement={measurement} name={run.id} />
      ) : (
        <Unmeasured run={run} />
      )}
    </tr>
  );
}

function Unmeasured({ run }: { run: Run }) {
  return (
    <>
      <td colSpan={5} className={styles.wide}>
        {run.error && (
          <div className={styles.notes}>
            <span>{run.error.title}</span>
            <span className="tiny">{run.error.detail}</span>
            <code className="tiny">{run.error.code}</code>
            {run.log_tail !== "" && (
              <details className="tiny">
                <summary>End of the runner&apos;s log</summary>
                <pre className={styles.log}>{run.log_tail}</pre>
              </details>
            )}
          </div>
        )}
      </td>
    </>
  );
}

function Measured({ measurement, name }: { measurement: RunMeasurement; name: string }) {
  const { latency, accelerators, samples_us: samplesUs } = measurement;
  return (
    <>
      <td>
        <Engine measurement={{ ...measurement, fallbacks: [], valid: true }} />
        <div className="soft tiny">{accelerators.join(", ")}</div>
      </td>
      <td className={styles.latency}>
        {formatLatency(latency.median_us)} {latency.simulated && <SimulatedBadge />}
        <div className="soft tiny">
          p90 {formatLatency(latency.p90_us)} · p99 {formatLatency(latency.p99_us)}
        </div>
        <div className="soft tiny">
          {latency.count} samples · MAD {formatLatency(latency.mad_us)}
        </div>
      </td>
      <td className={styles.wide}>
        <LatencyPlot samplesUs={samplesUs} medianUs={latency.median_us} label={name} />
      </td>
      <td className={styles.wide}>
        <StartUp measurement={measurement} />
      </td>
      <td className={styles.wide}>
        <Notes measurement={measurement} />
      </td>
    </>
  );
}

function StartUp({ measurement }: { measurement: RunMeasurement }) {
  const {
    peak_memory_bytes: peakBytes,
    compile_cold_us: coldUs,
    compile_cached_us: cachedUs,
  } = measurement;
  return (
    <dl className={styles.times}>
      <dt>load</dt>
      <dd>{formatLatency(measurement.load_us)}</dd>
      {typeof coldUs !== "number" && typeof cachedUs !== "number" && (
        <>
          <dt>compile</dt>
          <dd>{formatLatency(measurement.compile_us)}</dd>
        </>
      )}
      {typeof coldUs === "number" && (
        <>
          <dt>compile cold</dt>
          <dd>{formatLatency(coldUs)}</dd>
        </>
      )}
      {typeof cachedUs === "number" && (
        <>
          <dt>compile cached</dt>
          <dd>{formatLatency(cachedUs)}</dd>
        </>
      )}
      <dt>first run</dt>
      <dd>{formatLatency(measurement.first_run_us)}</dd>
      {typeof peakBytes === "number" && (
        <>
          <dt>peak memory</dt>
          <dd>{formatBytes(peakBytes)}</dd>
        </>
      )}
    </dl>
  );
}

function Notes({ measurement }: { measurement: RunMeasurement }) {
  const { fallbacks, notes, valid } = measurement;
  return (
    <ul className={styles.notes}>
      {!valid && (
        <li>
          <Badge tone="bad">not valid</Badge>
        </li>
      )}
      {fallbacks.map((fallback) => (
        <li key={fallback.code + fallback.detail}>
          <code className="tiny">{fallback.code}</code>
          {fallback.subgraph && <code className="soft tiny"> {fallback.subgraph}</code>}
          <div className="tiny">{fallback.detail}</div>
        </li>
      ))}
      {notes.map((note) => (
        <li key={note} className="tiny">
          {note}
        </li>
      ))}
    </ul>
  );
}
