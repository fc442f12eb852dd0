import { useState, type ReactNode } from "react";

import { Button } from "./Button";
import styles from "./ui.module.css";

interface EmptyStateProps {
  title: string;
  children: ReactNode;
}

/** What to do where there is nothing to show yet. */
export function EmptyState({ title, children }: EmptyStateProps) {
  return (
    <div className={styles.empty}>
      <h3>{title}</h3>
      {children}
    </div>
  );
}

/** A command line to copy. */
export function Command({ text }: { text: string }) {
  const [copied, setCopied] = useState(false);
  // The clipboard exists only in secure contexts; the text can be selected by hand anywhere.
  const canCopy = window.isSecureContext;
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setCopied(true);
  };
  return (
    <div className={styles.command}>
      <pre>
        <code>{text}</code>
      </pre>
      {canCopy && (
        <Button small onClick={() => void copy()}>
          {copied ? "Copied" : "Copy"}
        </Button>
      )}
    </div>
  );
}
