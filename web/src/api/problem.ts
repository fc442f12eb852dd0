import type { components } from "./schema";

export type Problem = NonNullable<components["schemas"]["Compilation"]["error"]>;

/** A refusal by the service, or by the way to it; always with a title, a detail and a code. */
export class ProblemError extends Error {
  readonly problem: Problem;

  constructor(problem: Problem) {
    super(`${problem.title}: ${problem.detail}`);
    this.name = "ProblemError";
    this.problem = problem;
  }
}

/** The problem told by an error body, or one about the answer itself when it is no problem body. */
export function problemOf(body: unknown, status: number): Problem {
  if (isProblem(body)) return body;
  return {
    type: "about:blank",
    code: `http.${status}`,
    title: "The service answered in an unexpected way",
    status,
    detail: `HTTP status ${status} without a problem description.`,
    error_class: status >= 500 ? "infra" : "bug",
    details: {},
  };
}

/** The problem to show for anything that was thrown. */
export function problemOfError(error: unknown): Problem {
  if (error instanceof ProblemError) return error.problem;
  // fetch reports every network failure as a TypeError.
  const unreachable = error instanceof TypeError;
  return {
    type: "about:blank",
    code: unreachable ? "page.unreachable" : "page.internal",
    title: unreachable ? "The service cannot be reached" : "The page failed",
    status: 0,
    detail: error instanceof Error ? error.message : String(error),
    error_class: unreachable ? "infra" : "bug",
    details: {},
  };
}

function isProblem(body: unknown): body is Problem {
  if (typeof body !== "object" || body === null) return false;
  const fields = body as Record<string, unknown>;
  return ["code", "title", "detail"].every((name) => typeof fields[name] === "string");
}
