import { useId, type ReactNode } from "react";

import styles from "./upload.module.css";

interface FileFieldProps {
  label: string;
  hint: string;
  accept: string;
  error?: string | undefined;
  onFile: (file: File | null) => void;
  children?: ReactNode;
}

/** A file to upload, with what is wrong about it right below. */
export function FileField({ label, hint, accept, error, onFile, children }: FileFieldProps) {
  const field = useId();
  const hintId = useId();
  return (
    <div className={styles.field}>
      <label className={styles.label} htmlFor={field}>
        {label}
      </label>
      <span id={hintId} className="soft tiny">
        {hint}
      </span>
      <input
        id={field}
        className={styles.file}
        type="file"
        accept={accept}
        aria-describedby={hintId}
        aria-invalid={error !== undefined}
        onChange={(event) => {
          onFile(event.target.files?.[0] ?? null);
        }}
      />
      <FieldError text={error} />
      {children}
    </div>
  );
}

interface Option<T> {
  value: T;
  label: string;
  note?: string | undefined;
}

interface ChoicesProps<T> {
  legend: string;
  type: "checkbox" | "radio";
  options: readonly Option<T>[];
  chosen: readonly T[];
  error?: string | undefined;
  onChange: (chosen: readonly T[]) => void;
  children?: ReactNode;
}

/** A group of check boxes or radio buttons. */
export function Choices<T extends string | number>(props: ChoicesProps<T>) {
  const { legend, type, options, chosen, error, onChange, children } = props;
  const name = useId();
  const change = (value: T, checked: boolean) => {
    if (type === "radio") onChange([value]);
    else
      onChange(
        options
          .map((one) => one.value)
          .filter((one) => (one === value ? checked : chosen.includes(one))),
      );
  };
  return (
    <fieldset>
      <legend>{legend}</legend>
      <div className={styles.grid}>
        {options.map(({ value, label, note }) => (
          <label key={value} className={styles.choice}>
            <input
              type={type}
              name={name}
              checked={chosen.includes(value)}
              onChange={(event) => {
                change(value, event.target.checked);
              }}
            />
            <span>
              {label}
              {note !== undefined && <span className="soft tiny"> {note}</span>}
            </span>
          </label>
        ))}
      </div>
      <FieldError text={error} />
      {children}
    </fieldset>
  );
}

interface OpsFieldProps {
  value: string;
  onChange: (value: string) => void;
  children?: ReactNode;
}

/** Operation types that are kept off the accelerator. */
export function OpsField({ value, onChange, children }: OpsFieldProps) {
  const field = useId();
  return (
    <div className={styles.field}>
      <label className={styles.label} htmlFor={field}>
        Keep on the CPU (optional)
      </label>
      <span className="soft tiny">ONNX operation types, separated by commas: Softmax, Resize</span>
      <input
        id={field}
        type="text"
        spellCheck={false}
        value={value}
        onChange={(event) => {
          onChange(event.target.value);
        }}
      />
      {children}
    </div>
  );
}

function FieldError({ text }: { text: string | undefined }) {
  return (
    text !== undefined && (
      <span className="tiny" role="alert" style={{ color: "var(--bad-text)" }}>
        {text}
      </span>
    )
  );
}
