import { Link } from "react-router";

import { problemOfError } from "../../api/problem";
import { isFinal, useCompilations, type Compilation } from "../../api/queries";
import { StatusBadge } from "../../ui/Badge";
import { Button, LinkButton } from "../../ui/Button";
import { Command, EmptyState } from "../../ui/EmptyState";
import { formatDuration, shortHash } from "../../ui/format";
import { levelRanges } from "../../ui/levels";
import { ProgressBar } from "../../ui/Meter";
import { Moment } from "../../ui/Moment";
import { ProblemNotice } from "../../ui/ProblemNotice";
import { Loading, Panel, ScrollRegion, Section } from "../../ui/Section";
import { durationS, targetsOf } from "./compilation";
import styles from "./compilations.module.css";

/** Compilations, newest first, with live progress. */
export function CompilationList() {
  const list = useCompilations();
  const compilations = list.data ?? [];
  return (
    <Section title="Compilations">
      {list.error && <ProblemNotice problem={problemOfError(list.error)} />}
      {list.isPending && <Loading what="compilations" />}
      {list.isSuccess && (
        <Panel>
          {compilations.length === 0 ? <NoCompilations /> : <Table compilations={compilations} />}
          {list.hasNextPage && (
            <div className={styles.more}>
              <Button
                small
                disabled={list.isFetchingNextPage}
                onClick={() => void list.fetchNextPage()}
              >
                Show older ones
              </Button>
            </div>
          )}
        </Panel>
      )}
    </Section>
  );
}

function NoCompilations() {
  return (
    <EmptyState title="Nothing was compiled yet">
      <p>Upload an ONNX model here, or compile one from the command line:</p>
      <Command text="nnfarm compile model.onnx --levels 1,4,7 --abi arm64-v8a --run-on all" />
      <LinkButton primary to="/upload">
        Upload a model
      </LinkButton>
    </EmptyState>
  );
}

function Table({ compilations }: { compilations: readonly Compilation[] }) {
  return (
    <ScrollRegion label="Compilations">
      <table className={`${styles.table ?? ""} stack`}>
        <thead>
          <tr>
            <th scope="col">Model</th>
            <th scope="col">Status</th>
            <th scope="col">NNAPI levels</th>
            <th scope="col">ABIs</th>
            <th scope="col">Runs</th>
            <th scope="col">When</th>
            <th scope="col">Duration</th>
          </tr>
        </thead>
        <tbody>
          {compilations.map((compilation) => (
            <Row key={compilation.id} compilation={compilation} />
          ))}
        </tbody>
      </table>
    </ScrollRegion>
  );
}

function Row({ compilation }: { compilation: Compilation }) {
  const { levels, abis } = targetsOf(compilation);
  const seconds = durationS(compilation);
  return (
    <tr>
      <th scope="row">
        <Link className={styles.model} to={`/compilations/${compilation.id}`}>
          {compilation.model.name}
        </Link>
        <div className="soft tiny mono">{shortHash(compilation.model.sha256)}</div>
      </th>
      <td data-label="Status">
        <Status compilation={compilation} />
      </td>
      <td data-label="NNAPI levels">{levelRanges(levels)}</td>
      <td data-label="ABIs">{abis.join(", ")}</td>
      <td data-label="Runs">{runSummary(compilation)}</td>
      <td data-label="When">
        <Moment at={compilation.created_at} />
      </td>
      <td data-label="Duration">{seconds === null ? "–" : formatDuration(seconds)}</td>
    </tr>
  );
}

function Status({ compilation }: { compilation: Compilation }) {
  const { status, stage, done, total, error } = compilation;
  if (isFinal(status)) {
    return (
      <>
        <StatusBadge status={status} />
        {error && <div className="soft tiny">{error.title}</div>}
      </>
    );
  }
  return (
    <div className={styles.progressCell}>
      <span>
        <StatusBadge status={status} />{" "}
        <span className="soft tiny">{stage && `${stage} · ${done}/${total}`}</span>
      </span>
      <ProgressBar label={`Progress of ${compilation.model.name}`} done={done} total={total} />
    </div>
  );
}

function runSummary({ runs }: Compilation): string {
  if (runs.length === 0) return "–";
  const succeeded = runs.filter((run) => run.status === "succeeded").length;
  return `${succeeded}/${runs.length} succeeded`;
}
