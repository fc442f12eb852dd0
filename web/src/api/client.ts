import createClient from "openapi-fetch";

import { ProblemError, problemOf } from "./problem";
import type { components, paths } from "./schema";
import { authorization } from "./token";

export type Schemas = components["schemas"];

export const client = createClient<paths>({ baseUrl: "/" });

client.use({
  onRequest({ request }) {
    for (const [name, value] of Object.entries(authorization())) request.headers.set(name, value);
    return request;
  },
});

interface Answer<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

/** The data of an answer; throws `ProblemError` for a refusal. */
export async function unwrap<T>(answer: Promise<Answer<T>>): Promise<T> {
  const { data, error, response } = await answer;
  if (!response.ok || data === undefined) throw new ProblemError(problemOf(error, response.status));
  return data;
}
