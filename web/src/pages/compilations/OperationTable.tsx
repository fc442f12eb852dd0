import { Fragment, useDeferredValue, useId, useMemo, useState, type ReactNode } from "react";

import { problemOfError } from "../../api/problem";
import { useReports, type Compilation, type OperationReport } from "../../api/queries";
import { Badge } from "../../ui/Badge";
import { ProblemNotice } from "../../ui/ProblemNotice";
import { Loading, Panel, Section } from "../../ui/Section";
import { filterRows, mergeReports, notesOf, reasonsOf, type OperationRow } from "./operations";
import styles from "./OperationTable.module.css";

interface OperationTableProps {
  artifacts: Compilation["artifacts"];
}

/** Where each operation of the model runs at each level, and why not on the accelerator. */
export function OperationTable({ artifacts }: OperationTableProps) {
  const abis = [...new Set(artifacts.map((one) => one.abi))];
  const [chosenAbi, setChosenAbi] = useState(abis[0]);
  const own = artifacts.filter((one) => one.abi === chosenAbi);
  const ordered = own.toSorted((a, b) => a.feature_level - b.feature_level);
  const answers = useReports(ordered.map((one) => one.id));
  const failed = answers.find((answer) => answer.error);
  const reports = answers.flatMap((answer) => (answer.data ? [answer.data] : []));
  return (
    <Section title="Operations" note="in the model's own graph order">
      {failed?.error && <ProblemNotice problem={problemOfError(failed.error)} />}
      <Panel>
        {reports.length < ordered.length ? (
          !failed && <Loading what="the explanation reports" />
        ) : (
          <Explanation
            rows={mergeReports(reports)}
            levels={reports.map((report) => report.feature_level)}
            abis={abis}
            abi={chosenAbi ?? ""}
            onAbi={(abi) => {
              setChosenAbi(abis.find((one) => one === abi));
            }}
          />
        )}
      </Panel>
    </Section>
  );
}

interface ExplanationProps {
  rows: readonly OperationRow[];
  levels: readonly number[];
  abis: readonly string[];
  abi: string;
  onAbi: (abi: string) => void;
}

function Explanation({ rows, levels, abis, abi, onAbi }: ExplanationProps) {
  const [text, setText] = useState("");
  const [onlyCpu, setOnlyCpu] = useState(false);
  const wanted = useDeferredValue(text);
  const shown = useMemo(() => filterRows(rows, { text: wanted, onlyCpu }), [rows, wanted, onlyCpu]);
  const abiField = useId();
  return (
    <>
      <div className={styles.controls}>
        <label className={styles.search}>
          <span className="visually-hidden">Search operations</span>
          <input
            type="search"
            placeholder="Name, type or reason"
            value={text}
            onChange={(event) => {
              setText(event.target.value);
            }}
          />
        </label>
        <label>
          <input
            type="checkbox"
            checked={onlyCpu}
            onChange={(event) => {
              setOnlyCpu(event.target.checked);
            }}
          />
          Only what stays on the CPU
        </label>
        {abis.length > 1 && (
          <label htmlFor={abiField}>
            ABI
            <select
              id={abiField}
              value={abi}
              onChange={(event) => {
                onAbi(event.target.value);
              }}
            >
              {abis.map((one) => (
                <option key={one}>{one}</option>
              ))}
            </select>
          </label>
        )}
        <span className={`${styles.count} soft tiny`} role="status">
          {shown.length} of {rows.length} operations
        </span>
      </div>
      <Table rows={rows} shown={shown} levels={levels} />
    </>
  );
}

interface TableProps {
  rows: readonly OperationRow[];
  shown: readonly OperationRow[];
  levels: readonly number[];
}

function Table({ rows, shown, levels }: TableProps) {
  const positions = new Map(rows.map((row, index) => [row.key, index + 1]));
  return (
    <div className={styles.scroll} role="region" aria-label="Operations" tabIndex={0}>
      <table className={styles.table}>
        <thead>
          <tr>
            <th className={styles.number} scope="col">
              #
            </th>
            <th scope="col">Operation</th>
            {levels.map((level) => (
              <th key={level} scope="col">
                Level {level}
              </th>
            ))}
            <th scope="col">Why on the CPU, and notes</th>
          </tr>
        </thead>
        <tbody>
          {shown.map((row) => (
            <Row key={row.key} row={row} position={positions.get(row.key) ?? 0} levels={levels} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

interface RowProps {
  row: OperationRow;
  position: number;
  levels: readonly number[];
}

function Row({ row, position, levels }: RowProps) {
  const reasons = reasonsOf(row);
  const notes = notesOf(row);
  return (
    <tr>
      <td className={styles.number}>{position}</td>
      <th scope="row">
        {row.opType}
        <span className={styles.becomes}>{nnapiNames(row)}</span>
        <span className={`${styles.name} soft`}>{breakable(row.name)}</span>
      </th>
      {levels.map((level) => (
        <td key={level} className={styles.cell}>
          <Placement level={level} operation={row.byLevel.get(level)} />
        </td>
      ))}
      <td className={styles.why}>
        {reasons.length + notes.length > 0 && (
          <ul className={styles.reasons}>
            {notes.map((note) => (
              <li key={note} className="tiny">
                {note}
              </li>
            ))}
            {reasons.map((reason) => (
              <li key={reason.code + reason.levels} className="tiny">
                <span className="soft">Level {reason.levels}:</span> {reason.sentence}
              </li>
            ))}
          </ul>
        )}
      </td>
    </tr>
  );
}

/** A node name that wraps after its slashes. */
function breakable(name: string): ReactNode {
  return name.split(/(?<=\/)/).map((part, index) => (
    // Parts have no identity but their place, and a name never changes.
    <Fragment key={index}>
      {part}
      <wbr />
    </Fragment>
  ));
}

/** What NNAPI calls the operation; shown on narrow screens, where cells have no room for it. */
function nnapiNames(row: OperationRow): string {
  const names = [...row.byLevel.values()].map((one) => one.nnapi_operations.join(" + "));
  return [...new Set(names.filter(Boolean))].join(" or ");
}

interface PlacementProps {
  level: number;
  operation: OperationReport | undefined;
}

function Placement({ level, operation }: PlacementProps) {
  const tag = <span className={styles.levelTag}>L{level}</span>;
  if (operation === undefined) return <span className="soft">{tag} –</span>;
  switch (operation.placement) {
    case "nnapi":
      return (
        <>
          <Badge tone="nnapi">
            {tag}
            <span className={styles.nnapiName}>{operation.nnapi_operations.join(" + ")}</span>
          </Badge>
          <span className={`${styles.note} soft tiny`}>subgraph {operation.subgraph}</span>
        </>
      );
    case "cpu":
      return <OnCpu tag={tag} rejection={operation.rejection} />;
    case "folded":
      return (
        <span className="soft tiny" title="Computed at compile time, or part of another operation">
          {tag} folded
        </span>
      );
  }
}

interface OnCpuProps {
  tag: ReactNode;
  rejection: OperationReport["rejection"];
}

function OnCpu({ tag, rejection }: OnCpuProps) {
  const level = rejection?.needed_level;
  return (
    <span title={rejection?.sentence}>
      <Badge tone="cpu">{tag} CPU</Badge>
      {typeof level === "number" && (
        <span className={`${styles.note} soft tiny`}>from level {level}</span>
      )}
    </span>
  );
}
