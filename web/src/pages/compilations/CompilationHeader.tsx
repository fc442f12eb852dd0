import type { ReactNode } from "react";
import { Link } from "react-router";

import { isFinal, type Compilation } from "../../api/queries";
import { Badge, StatusBadge } from "../../ui/Badge";
import { formatBytes, formatDuration, formatShare, shortHash } from "../../ui/format";
import { levelRanges } from "../../ui/levels";
import { ProgressBar } from "../../ui/Meter";
import { Moment } from "../../ui/Moment";
import { ProblemNotice } from "../../ui/ProblemNotice";
import styles from "./CompilationHeader.module.css";
import { durationS, targetsOf } from "./compilation";
import type { LiveProgress } from "./progress";

interface CompilationHeaderProps {
  compilation: Compilation;
  progress: LiveProgress;
}

/** What is compiled, how far it is, and what went wrong. */
export function CompilationHeader({ compilation, progress }: CompilationHeaderProps) {
  const { model, status, error } = compilation;
  return (
    <header className={styles.head}>
      <p className="tiny">
        <Link to="/">Compilations</Link> <span className="soft">/ {compilation.id}</span>
      </p>
      <div className={styles.title}>
        <h1>{model.name}</h1>
        <StatusBadge status={status} />
        {compilation.cached && <Badge tone="quiet">built before</Badge>}
      </div>
      <Facts compilation={compilation} />
      {!isFinal(status) && <Live compilation={compilation} progress={progress} />}
      {error && <ProblemNotice problem={error} />}
      <StageDurations durationsUs={compilation.stage_durations_us} />
    </header>
  );
}

function Facts({ compilation }: { compilation: Compilation }) {
  const { model, evaluation } = compilation;
  const { levels, abis } = targetsOf(compilation);
  const seconds = durationS(compilation);
  return (
    <dl className={styles.facts}>
      <Fact name="Model">
        {formatBytes(model.size_bytes)} ·{" "}
        <code title={model.sha256}>{shortHash(model.sha256)}</code>
      </Fact>
      <Fact name="NNAPI levels">{levelRanges(levels)}</Fact>
      <Fact name="ABIs">{abis.join(", ")}</Fact>
      <Fact name="Asked">
        <Moment at={compilation.created_at} />
      </Fact>
      {seconds !== null && <Fact name="Took">{formatDuration(seconds)}</Fact>}
      {evaluation && (
        <Fact name="Evaluated on">
          {evaluation.sample_count} {evaluation.synthetic ? "random inputs" : "samples"}
          {typeof evaluation.original_top1 === "number" &&
            ` · original top-1 ${formatShare(evaluation.original_top1)}`}
        </Fact>
      )}
    </dl>
  );
}

function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

function Live({ compilation, progress }: CompilationHeaderProps) {
  const { done, total, stage, status } = compilation;
  const waiting = status === "queued" ? "waiting for a worker" : (stage ?? "starting");
  return (
    <div className={styles.live}>
      <ProgressBar label="Compilation progress" done={done} total={total} />
      <p className={styles.liveLine} aria-live="polite">
        <span>{progress.activity === "" ? waiting : progress.activity}</span>
        <span className="soft">
          {total > 0 && `${done} of ${total} steps`}
          {progress.connection === "reconnecting" && " · connection lost, trying again"}
        </span>
      </p>
    </div>
  );
}

function StageDurations({ durationsUs }: { durationsUs: Record<string, number> }) {
  const stages = Object.entries(durationsUs);
  if (stages.length === 0) return null;
  return (
    <div className={styles.stages}>
      <div className={styles.stageBar} aria-hidden="true">
        {stages.map(([stage, us]) => (
          <span key={stage} style={{ flexGrow: us }} title={stage} />
        ))}
      </div>
      <ul className={styles.stageNames} aria-label="Time by stage">
        {stages.map(([stage, us]) => (
          <li key={stage}>
            {stage} {formatDuration(us / 1e6)}
          </li>
        ))}
      </ul>
    </div>
  );
}
