import { useEffect, useRef } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";

import { formatLatency } from "../../ui/format";
import styles from "./RunTable.module.css";

const WIDTH_PX = 220;
const HEIGHT_PX = 56;

interface LatencyPlotProps {
  samplesUs: readonly number[];
  medianUs: number;
  label: string;
}

/** Raw latency samples in the order they were taken, over their median. */
export function LatencyPlot({ samplesUs, medianUs, label }: LatencyPlotProps) {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const target = place.current;
    if (target === null) return undefined;
    let plot = draw(target, samplesUs, medianUs);
    // The canvas does not follow the style sheet by itself.
    const scheme = window.matchMedia("(prefers-color-scheme: dark)");
    const redraw = () => {
      plot.destroy();
      plot = draw(target, samplesUs, medianUs);
    };
    scheme.addEventListener("change", redraw);
    return () => {
      scheme.removeEventListener("change", redraw);
      plot.destroy();
    };
  }, [samplesUs, medianUs]);
  return (
    <div ref={place} className={styles.plot} role="img" aria-label={describe(label, samplesUs)} />
  );
}

function describe(label: string, samplesUs: readonly number[]): string {
  const least = Math.min(...samplesUs);
  const most = Math.max(...samplesUs);
  const range = `${formatLatency(least)} to ${formatLatency(most)}`;
  return `Latency samples of ${label}: ${samplesUs.length} between ${range}`;
}

function draw(target: HTMLElement, samplesUs: readonly number[], medianUs: number): uPlot {
  const style = getComputedStyle(target);
  const dots = style.getPropertyValue("--nnapi").trim();
  const line = style.getPropertyValue("--cpu").trim();
  const options: uPlot.Options = {
    width: WIDTH_PX,
    height: HEIGHT_PX,
    padding: [4, 4, 4, 4],
    legend: { show: false },
    cursor: { show: false },
    select: { show: false, left: 0, top: 0, width: 0, height: 0 },
    axes: [{ show: false }, { show: false }],
    scales: { x: { time: false } },
    series: [
      {},
      { paths: () => null, points: { show: true, size: 3, fill: dots, stroke: dots } },
      { stroke: line, width: 1, points: { show: false } },
    ],
  };
  const order = samplesUs.map((_, index) => index);
  return new uPlot(options, [order, [...samplesUs], order.map(() => medianUs)], target);
}
