import { Fragment, type ReactNode } from "react";

import type { ArtifactSummary, Compilation, Run } from "../../api/queries";
import { Badge } from "../../ui/Badge";
import { formatBytes } from "../../ui/format";
import { ANDROID_BY_LEVEL } from "../../ui/levels";
import { OffloadMeter } from "../../ui/Meter";
import { Panel, ScrollRegion, Section } from "../../ui/Section";
import { DownloadLink } from "./DownloadLink";
import styles from "./LevelMatrix.module.css";
import { buildMatrix, type AbiGroup, type DeviceRuns } from "./matrix";
import { RUN_FACTS } from "./run_facts";

interface LevelMatrixProps {
  artifacts: Compilation["artifacts"];
  runs: readonly Run[];
}

const NAME_WIDTH_PX = 120;
const LEVEL_WIDTH_PX = 148;

/** The narrowest table whose columns are still readable; below it the table scrolls. */
function tableWidthPx(levelCount: number): number {
  return NAME_WIDTH_PX + levelCount * LEVEL_WIDTH_PX;
}

/** Artifacts and what the phones measured, one column a feature level. */
export function LevelMatrix({ artifacts, runs }: LevelMatrixProps) {
  const { levels, groups } = buildMatrix(artifacts, runs);
  return (
    <Section title="Levels side by side">
      <Panel>
        <ScrollRegion label="Levels side by side">
          <table className={styles.table} style={{ minWidth: tableWidthPx(levels.length) }}>
            <thead>
              <tr>
                <td className={styles.corner} />
                {levels.map((level) => (
                  <th key={level} scope="col">
                    <span className={styles.level}>Level {level}</span>
                    {ANDROID_BY_LEVEL[level]}
                  </th>
                ))}
              </tr>
            </thead>
            {groups.map((group) => (
              <Fragment key={group.abi}>
                <ArtifactRows group={group} levels={levels} />
                {group.devices.map((block) => (
                  <DeviceRows key={block.key} block={block} levels={levels} />
                ))}
              </Fragment>
            ))}
          </table>
        </ScrollRegion>
      </Panel>
    </Section>
  );
}

function ArtifactRows({ group, levels }: { group: AbiGroup; levels: readonly number[] }) {
  const row = (name: string, cell: (artifact: ArtifactSummary) => ReactNode) => (
    <tr>
      <th scope="row">{name}</th>
      {levels.map((level) => {
        const artifact = group.artifactByLevel.get(level);
        return <td key={level}>{artifact ? cell(artifact) : "–"}</td>;
      })}
    </tr>
  );
  return (
    <tbody>
      <GroupHeading span={levels.length + 1} strong>
        {group.abi}
      </GroupHeading>
      {row("Offloaded", (one) => (
        <OffloadMeter offloaded={one.offloaded_count} total={one.operation_count} />
      ))}
      {row("Subgraphs", (one) => one.subgraph_count)}
      {row("Package", (one) => (
        <>
          {formatBytes(one.size_bytes)}
          <div className={styles.download}>
            <DownloadLink artifact={one} />
          </div>
        </>
      ))}
    </tbody>
  );
}

function DeviceRows({ block, levels }: { block: DeviceRuns; levels: readonly number[] }) {
  const { device, runByLevel } = block;
  const runs = levels.map((level) => runByLevel.get(level));
  const anyMeasured = runs.some((run) => run?.measurement);
  return (
    <tbody>
      <GroupHeading span={levels.length + 1}>
        {device === null ? "No device yet" : device.description.name}
        {device?.description.simulated && <Badge tone="cpu">virtual</Badge>}
        {device !== null && (
          <span className="soft tiny">NNAPI level {device.description.feature_level}</span>
        )}
      </GroupHeading>
      {RUN_FACTS.slice(0, anyMeasured ? undefined : 1).map(({ name, show }) => (
        <tr key={name}>
          <th scope="row">{name}</th>
          {levels.map((level, index) => (
            <td key={level}>{show(runs[index])}</td>
          ))}
        </tr>
      ))}
    </tbody>
  );
}

interface GroupHeadingProps {
  span: number;
  strong?: boolean;
  children: ReactNode;
}

function GroupHeading({ span, strong = false, children }: GroupHeadingProps) {
  return (
    <tr>
      <th className={strong ? styles.abi : styles.group} colSpan={span} scope="rowgroup">
        <span className={styles.groupName}>{children}</span>
      </th>
    </tr>
  );
}
