import styles from "./ui.module.css";

interface OffloadMeterProps {
  offloaded: number;
  total: number;
}

/** Offloaded operations of all, as numbers and as a bar: teal for NNAPI, amber for the CPU. */
export function OffloadMeter({ offloaded, total }: OffloadMeterProps) {
  const share = total === 0 ? 0 : offloaded / total;
  return (
    <>
      <span>
        <strong>{offloaded}</strong>/{total}
      </span>
      <span className={styles.bar} aria-hidden="true">
        <span className={styles.barFill} style={{ width: `${share * 100}%` }} />
      </span>
    </>
  );
}

interface ProgressBarProps {
  label: string;
  done: number;
  total: number;
}

/** Steps that are over, of all; a total of 0 means that the plan is not known yet. */
export function ProgressBar({ label, done, total }: ProgressBarProps) {
  const share = total === 0 ? 0 : done / total;
  return (
    <div
      className={styles.progress}
      role="progressbar"
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={total === 0 ? 1 : total}
      aria-valuenow={done}
      aria-valuetext={`${done} of ${total} steps`}
    >
      <div className={styles.progressFill} style={{ width: `${share * 100}%` }} />
    </div>
  );
}
