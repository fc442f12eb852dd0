import { useQueryClient } from "@tanstack/react-query";
import { useId, useState, type SyntheticEvent } from "react";

import type { Problem } from "../api/problem";
import { keepToken } from "../api/token";
import styles from "./ui.module.css";

const NEXT_STEPS: Record<Problem["error_class"], string> = {
  user: "Change the request; trying again as it is gives the same answer.",
  infra: "The service tries again by itself.",
  device: "The run is tried on another device.",
  bug: "This is a fault of nnfarm; please report it with the code.",
};

interface ProblemNoticeProps {
  problem: Problem;
}

/** An error as the service tells it: title, detail, code, and whose turn it is. */
export function ProblemNotice({ problem }: ProblemNoticeProps) {
  return (
    <div className={styles.problem} role="alert">
      <p className={styles.problemTitle}>{problem.title}</p>
      <p>{problem.detail}</p>
      <p className={styles.problemFoot}>
        <code>{problem.code}</code>
        <span className="soft">{NEXT_STEPS[problem.error_class]}</span>
      </p>
      {problem.code === "request.unauthorized" && <TokenForm />}
    </div>
  );
}

function TokenForm() {
  const queries = useQueryClient();
  const field = useId();
  const [token, setToken] = useState("");
  const submit = (event: SyntheticEvent) => {
    event.preventDefault();
    keepToken(token.trim());
    void queries.resetQueries();
  };
  return (
    <form className={styles.tokenForm} onSubmit={submit}>
      <label htmlFor={field}>API token</label>
      <input
        id={field}
        type="password"
        autoComplete="off"
        value={token}
        onChange={(event) => {
          setToken(event.target.value);
        }}
      />
      <button className={styles.button} type="submit">
        Use for this tab
      </button>
    </form>
  );
}
