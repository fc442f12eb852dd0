import type { Compilation } from "../../api/queries";
import { useReports } from "../../api/queries";
import { OffloadMeter } from "../../ui/Meter";
import { Panel, ScrollRegion, Section } from "../../ui/Section";
import { ANDROID_BY_LEVEL } from "../../ui/levels";
import styles from "./LevelMatrix.module.css";

interface CoverageTableProps {
  artifacts: Compilation["artifacts"];
}

const NARROWEST_PX = 560;

/** What every feature level would offload, also those nobody asked for. */
export function CoverageTable({ artifacts }: CoverageTableProps) {
  const [answer] = useReports(artifacts.slice(0, 1).map((one) => one.id));
  const report = answer?.data;
  if (!report || report.what_if.length === 0) return null;
  const asked = new Set(artifacts.map((one) => one.feature_level));
  return (
    <Section title="What if" note="the same model at every feature level; nothing was built for it">
      <Panel>
        <ScrollRegion label="What every feature level would offload">
          <table className={styles.table} style={{ minWidth: NARROWEST_PX }}>
            <thead>
              <tr>
                <th scope="col">Level</th>
                <th scope="col">Operations</th>
                <th scope="col">Multiply-accumulates</th>
                <th scope="col">Subgraphs</th>
                <th scope="col">Compiled</th>
              </tr>
            </thead>
            <tbody>
              {report.what_if.map((level) => (
                <tr key={level.feature_level}>
                  <th scope="row">
                    {level.feature_level} ({ANDROID_BY_LEVEL[level.feature_level]})
                  </th>
                  <td>
                    <OffloadMeter
                      offloaded={level.offloaded_count}
                      total={report.operation_count}
                    />
                  </td>
                  <td>{share(level.offloaded_macs, report.macs)}</td>
                  <td>{level.subgraph_count}</td>
                  <td>{asked.has(level.feature_level) ? "yes" : "no"}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </ScrollRegion>
      </Panel>
    </Section>
  );
}

function share(some: number, whole: number): string {
  return whole === 0 ? "–" : `${((100 * some) / whole).toFixed(1)} %`;
}
