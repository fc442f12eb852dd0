import {
  useInfiniteQuery,
  useQueries,
  useQuery,
  type UseInfiniteQueryResult,
} from "@tanstack/react-query";

import { client, unwrap, type Schemas } from "./client";

export type Model = Schemas["Model"];
export type Quantization = Schemas["Quantization"];
export type Tuning = Schemas["Tuning"];
export type Compilation = Schemas["Compilation"];
export type ArtifactSummary = Compilation["artifacts"][number];
export type Device = Schemas["Device"];
export type Run = Schemas["Run"];
export type RunMeasurement = NonNullable<Run["measurement"]>;
export type ExplanationReport = Schemas["ExplanationReport"];
export type OperationReport = ExplanationReport["operations"][number];

export const COMPILATION_PAGE = 20;
const LIST_POLL_MS = 2_000;
const DEVICE_POLL_MS = 5_000;
const WHOLE_PAGE = 200;

export const keys = {
  models: ["models"] as const,
  quantizations: ["quantizations"] as const,
  tunings: ["tunings"] as const,
  compilations: ["compilations"] as const,
  compilation: (id: string) => ["compilation", id] as const,
  runs: (id: string) => ["runs", id] as const,
  report: (artifactId: string) => ["report", artifactId] as const,
  devices: ["devices"] as const,
};

export function isFinal(status: Compilation["status"]): boolean {
  return status === "succeeded" || status === "failed";
}

export function isRunFinal(status: Run["status"]): boolean {
  return status === "succeeded" || status === "failed" || status === "skipped";
}

/** Whether anything about a compilation can still change. */
export function isSettled(compilation: Compilation): boolean {
  return isFinal(compilation.status) && compilation.runs.every((run) => isRunFinal(run.status));
}

/** Pages of compilations, newest first; asked again while one of them is going on. */
export function useCompilations(): UseInfiniteQueryResult<Compilation[]> {
  return useInfiniteQuery({
    queryKey: keys.compilations,
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam, signal }) => {
      const cursor = pageParam === undefined ? {} : { cursor: pageParam };
      const query = { limit: COMPILATION_PAGE, ...cursor };
      return unwrap(client.GET("/v1/compilations", { params: { query }, signal }));
    },
    getNextPageParam: (page) => page.next_cursor ?? undefined,
    select: (data) => data.pages.flatMap((page) => page.items),
    refetchInterval: (query) => {
      const all = query.state.data?.pages.flatMap((page) => page.items) ?? [];
      return all.every(isSettled) ? false : LIST_POLL_MS;
    },
  });
}

export function useCompilation(id: string) {
  return useQuery({
    queryKey: keys.compilation(id),
    queryFn: ({ signal }) => {
      const params = { path: { compilation_id: id } };
      return unwrap(client.GET("/v1/compilations/{compilation_id}", { params, signal }));
    },
  });
}

/** Every run of a compilation. */
export function useRuns(compilationId: string) {
  return useQuery({
    queryKey: keys.runs(compilationId),
    queryFn: ({ signal }) =>
      collectPages<Run>((cursor) => {
        const query = { compilation_id: compilationId, limit: WHOLE_PAGE, ...cursor };
        return unwrap(client.GET("/v1/runs", { params: { query }, signal }));
      }),
  });
}

export function useReports(artifactIds: readonly string[]) {
  return useQueries({
    queries: artifactIds.map((artifactId) => ({
      queryKey: keys.report(artifactId),
      // An artifact never changes, nor does its report.
      staleTime: Infinity,
      queryFn: ({ signal }: { signal: AbortSignal }) => {
        const params = { path: { artifact_id: artifactId } };
        return unwrap(client.GET("/v1/artifacts/{artifact_id}/report", { params, signal }));
      },
    })),
  });
}

/** Every model, newest first. */
export function useModels() {
  return useQuery({
    queryKey: keys.models,
    refetchInterval: DEVICE_POLL_MS,
    queryFn: ({ signal }) =>
      collectPages<Model>((cursor) => {
        const query = { limit: WHOLE_PAGE, ...cursor };
        return unwrap(client.GET("/v1/models", { params: { query }, signal }));
      }),
  });
}

/** Every quantization, newest first; asked again while one of them is going on. */
export function useQuantizations() {
  return useQuery({
    queryKey: keys.quantizations,
    queryFn: ({ signal }) =>
      collectPages<Quantization>((cursor) => {
        const query = { limit: WHOLE_PAGE, ...cursor };
        return unwrap(client.GET("/v1/quantizations", { params: { query }, signal }));
      }),
    refetchInterval: (query) => {
      const all = query.state.data ?? [];
      return all.every(({ status }) => isFinal(status)) ? DEVICE_POLL_MS : LIST_POLL_MS;
    },
  });
}

/** Every tuning, newest first; asked again while one of them is going on. */
export function useTunings() {
  return useQuery({
    queryKey: keys.tunings,
    queryFn: ({ signal }) =>
      collectPages<Tuning>((cursor) => {
        const query = { limit: WHOLE_PAGE, ...cursor };
        return unwrap(client.GET("/v1/tunings", { params: { query }, signal }));
      }),
    refetchInterval: (query) => {
      const all = query.state.data ?? [];
      return all.every(({ status }) => isFinal(status)) ? DEVICE_POLL_MS : LIST_POLL_MS;
    },
  });
}

/** Every device of the farm. */
export function useDevices() {
  return useQuery({
    queryKey: keys.devices,
    refetchInterval: DEVICE_POLL_MS,
    queryFn: ({ signal }) =>
      collectPages<Device>((cursor) => {
        const query = { limit: WHOLE_PAGE, ...cursor };
        return unwrap(client.GET("/v1/devices", { params: { query }, signal }));
      }),
  });
}

interface Page<T> {
  items: T[];
  next_cursor?: string | null;
}

/** All items of a list, over as many pages as there are. */
async function collectPages<T>(
  ask: (cursor: { cursor?: string }) => Promise<Page<T>>,
): Promise<T[]> {
  const items: T[] = [];
  let cursor: { cursor?: string } = {};
  for (;;) {
    const page = await ask(cursor);
    items.push(...page.items);
    if (!page.next_cursor) return items;
    cursor = { cursor: page.next_cursor };
  }
}
