import { useEffect, useState } from "react";

import { formatAgo } from "./format";

const TICK_MS = 30_000;

/** A moment as "4 min ago", with the exact time on hover and for machines. */
export function Moment({ at }: { at: string }) {
  const [now, setNow] = useState(() => new Date());
  useEffect(() => {
    const timer = setInterval(() => {
      setNow(new Date());
    }, TICK_MS);
    return () => {
      clearInterval(timer);
    };
  }, []);
  const then = new Date(at);
  return (
    <time dateTime={at} title={then.toLocaleString()}>
      {formatAgo(then, now)}
    </time>
  );
}
