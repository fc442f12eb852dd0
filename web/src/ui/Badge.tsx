import type { ReactNode } from "react";

import styles from "./ui.module.css";

export type Tone = "quiet" | "good" | "bad" | "info" | "nnapi" | "cpu";

interface BadgeProps {
  tone: Tone;
  title?: string;
  children: ReactNode;
}

/** A word on a tinted ground; the word says it all, the tint only helps the eye. */
export function Badge({ tone, title, children }: BadgeProps) {
  return (
    <span className={`${styles.badge} ${styles[tone]}`} title={title}>
      {children}
    </span>
  );
}

const STATUS_TONES: Record<string, Tone> = {
  queued: "quiet",
  running: "info",
  leased: "info",
  succeeded: "good",
  failed: "bad",
  skipped: "cpu",
  online: "good",
  busy: "info",
  offline: "quiet",
  quarantined: "bad",
  maintenance: "cpu",
};

/** The status of a compilation or run, or the state of a device. */
export function StatusBadge({ status }: { status: string }) {
  return <Badge tone={STATUS_TONES[status] ?? "quiet"}>{status}</Badge>;
}

/** Marks every number that a virtual phone's simulator made up. */
export function SimulatedBadge() {
  return (
    <Badge tone="cpu" title="A virtual phone: its latency comes from a speed model, not a chip.">
      simulated
    </Badge>
  );
}
