import { useId, type ReactNode } from "react";

import styles from "./ui.module.css";

interface SectionProps {
  title: string;
  note?: ReactNode;
  children: ReactNode;
}

/** A titled part of a page, a landmark of its own. */
export function Section({ title, note, children }: SectionProps) {
  const heading = useId();
  return (
    <section className={styles.section} aria-labelledby={heading}>
      <div className={styles.sectionHead}>
        <h2 id={heading}>{title}</h2>
        {note !== undefined && <div className="soft tiny">{note}</div>}
      </div>
      {children}
    </section>
  );
}

export function Panel({ children }: { children: ReactNode }) {
  return <div className={styles.panel}>{children}</div>;
}

interface ScrollRegionProps {
  label: string;
  children: ReactNode;
}

/** Lets a wide table scroll by itself on a narrow screen, by keyboard too. */
export function ScrollRegion({ label, children }: ScrollRegionProps) {
  return (
    <div className={styles.scroll} role="region" aria-label={label} tabIndex={0}>
      {children}
    </div>
  );
}

export function Loading({ what }: { what: string }) {
  return (
    <p className={styles.loading} role="status">
      Loading {what}…
    </p>
  );
}
