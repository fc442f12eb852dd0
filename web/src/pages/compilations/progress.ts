import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";

import type { Schemas } from "../../api/client";
import { followEvents, type StreamEvent } from "../../api/event_stream";
import { keys, type Compilation } from "../../api/queries";
import { authorization } from "../../api/token";

type StageEvent = Pick<Compilation, "stage" | "done" | "total"> & {
  feature_level?: number | null;
  abi?: string | null;
  message?: string;
};

export interface LiveProgress {
  connection: "connecting" | "live" | "reconnecting";
  /** What the worker does right now, in its own words. */
  activity: string;
}

/** Follows a compilation's events while `active`, writing what they say into the query cache. */
export function useLiveProgress(compilationId: string, active: boolean): LiveProgress {
  const queries = useQueryClient();
  const [connection, setConnection] = useState<LiveProgress["connection"]>("connecting");
  const [activity, setActivity] = useState("");

  useEffect(() => {
    if (!active) return undefined;
    const abort = new AbortController();
    const key = keys.compilation(compilationId);
    const refresh = () => {
      void queries.invalidateQueries({ queryKey: key });
      void queries.invalidateQueries({ queryKey: keys.runs(compilationId) });
    };
    const onEvent = (event: StreamEvent) => {
      if (event.event === "progress") {
        const stage = JSON.parse(event.data) as StageEvent;
        queries.setQueryData<Schemas["Compilation"]>(key, (old) => withProgress(old, stage));
        setActivity(describe(stage));
        return;
      }
      refresh();
    };
    // A stream also ends when all is over, so each break is a reason to look at the state.
    const onState = (state: LiveProgress["connection"]) => {
      setConnection(state);
      if (state === "reconnecting") refresh();
    };
    void followEvents(`/v1/compilations/${compilationId}/events`, {
      headers: authorization,
      signal: abort.signal,
      onEvent,
      onState,
    });
    return () => {
      abort.abort();
    };
  }, [active, compilationId, queries]);

  return { connection, activity };
}

function withProgress(
  old: Compilation | undefined,
  { stage, done, total }: StageEvent,
): Compilation | undefined {
  return old && { ...old, stage, done, total };
}

function describe({ stage, feature_level, abi, message }: StageEvent): string {
  const level = feature_level ? `level ${feature_level}` : "";
  return [stage, level, abi, message].filter(Boolean).join(" · ");
}
