import { useState, type MouseEvent } from "react";

import { client, unwrap } from "../../api/client";
import { problemOfError, type Problem } from "../../api/problem";
import type { ArtifactSummary } from "../../api/queries";
import { currentToken } from "../../api/token";
import { smallButtonClass } from "../../ui/Button";
import { ProblemNotice } from "../../ui/ProblemNotice";

/** Downloads an artifact's package. */
export function DownloadLink({ artifact }: { artifact: ArtifactSummary }) {
  const [problem, setProblem] = useState<Problem | null>(null);
  const name = `level ${artifact.feature_level}, ${artifact.abi}`;
  const download = (event: MouseEvent<HTMLAnchorElement>) => {
    // The browser streams a plain link to disk, but sends no token with it.
    if (currentToken() === "") return;
    event.preventDefault();
    saveWithToken(artifact).catch((error: unknown) => {
      setProblem(problemOfError(error));
    });
  };
  return (
    <>
      <a
        className={smallButtonClass}
        href={`/v1/artifacts/${artifact.id}/package`}
        download
        aria-label={`Download the package, ${name}`}
        onClick={download}
      >
        Download
      </a>
      {problem && <ProblemNotice problem={problem} />}
    </>
  );
}

async function saveWithToken({ id, feature_level, abi }: ArtifactSummary): Promise<void> {
  const params = { path: { artifact_id: id } };
  const answer = client.GET("/v1/artifacts/{artifact_id}/package", { params, parseAs: "blob" });
  const url = URL.createObjectURL(await unwrap<Blob>(answer));
  const link = document.createElement("a");
  link.href = url;
  link.download = `${id}-level${feature_level}-${abi}.zip`;
  link.click();
  URL.revokeObjectURL(url);
}
