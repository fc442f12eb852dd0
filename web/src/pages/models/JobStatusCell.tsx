import { isFinal, type Quantization, type Tuning } from "../../api/queries";
import { StatusBadge } from "../../ui/Badge";
import { ProgressBar } from "../../ui/Meter";
import styles from "./models.module.css";

/** Where a job on a model is: its progress, or how it ended and why. */
export function JobStatusCell({ job }: { job: Quantization | Tuning }) {
  const { status, stage, done, total, error, model } = job;
  if (isFinal(status)) {
    return (
      <>
        <StatusBadge status={status} />
        {error && <div className="soft tiny">{error.detail}</div>}
      </>
    );
  }
  return (
    <div className={styles.progressCell}>
      <span>
        <StatusBadge status={status} />{" "}
        <span className="soft tiny">{stage && `${stage} · ${done}/${total}`}</span>
      </span>
      <ProgressBar label={`Progress of ${model.name}`} done={done} total={total} />
    </div>
  );
}
