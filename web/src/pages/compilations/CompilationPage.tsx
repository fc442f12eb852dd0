import { useParams } from "react-router";

import { problemOfError } from "../../api/problem";
import { isSettled, useCompilation, useRuns, type Compilation, type Run } from "../../api/queries";
import { ProblemNotice } from "../../ui/ProblemNotice";
import { Loading, Section } from "../../ui/Section";
import { useTitle } from "../../ui/useTitle";
import { CompilationHeader } from "./CompilationHeader";
import { CoverageTable } from "./CoverageTable";
import { LevelMatrix } from "./LevelMatrix";
import { OperationTable } from "./OperationTable";
import { useLiveProgress } from "./progress";
import { RunTable } from "./RunTable";

/** Everything about one compilation. */
export function CompilationPage() {
  const { id = "" } = useParams();
  const compilation = useCompilation(id);
  useTitle(compilation.data?.model.name ?? "Compilation");
  if (compilation.isPending) return <Loading what="the compilation" />;
  if (compilation.isLoadingError) {
    return <ProblemNotice problem={problemOfError(compilation.error)} />;
  }
  return <Loaded compilation={compilation.data} />;
}

function Loaded({ compilation }: { compilation: Compilation }) {
  const runs = useRuns(compilation.id);
  const progress = useLiveProgress(compilation.id, !isSettled(compilation));
  return (
    <>
      <CompilationHeader compilation={compilation} progress={progress} />
      {runs.error && <ProblemNotice problem={problemOfError(runs.error)} />}
      {compilation.artifacts.length > 0 && (
        <Results compilation={compilation} runs={runs.data ?? []} />
      )}
    </>
  );
}

interface ResultsProps {
  compilation: Compilation;
  runs: readonly Run[];
}

function Results({ compilation, runs }: ResultsProps) {
  return (
    <>
      <LevelMatrix artifacts={compilation.artifacts} runs={runs} />
      <OperationTable artifacts={compilation.artifacts} />
      <CoverageTable artifacts={compilation.artifacts} />
      <Section title="Runs" note={runs.length > 0 && `${runs.length} runs`}>
        <RunTable artifacts={compilation.artifacts} runs={runs} />
      </Section>
    </>
  );
}
