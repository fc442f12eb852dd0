import { client, unwrap, type Schemas } from "../../api/client";
import type { Problem } from "../../api/problem";
import type { CpuVariant } from "./cpu_variants";

export type Abi = Schemas["CompilationRequest"]["abis"][number];
export type RunOn = "none" | "any" | "all";

/** What the form asks for. */
export interface Submission {
  model: File;
  dataset: File | null;
  levels: number[];
  abis: Abi[];
  cpuVariants: CpuVariant[];
  excludeOps: string[];
  runOn: RunOn;
}

export type Step = "model" | "dataset" | "compilation";

/** The part of the form a problem is shown at. */
export type Place = "model" | "dataset" | "levels" | "abis" | "options" | "form";

/** Uploads the files and starts the compilation; gives its id. */
export async function submit(wanted: Submission, onStep: (step: Step) => void): Promise<string> {
  onStep("model");
  const model = await uploadModel(wanted.model);
  let dataset: { dataset_id?: string } = {};
  if (wanted.dataset !== null) {
    onStep("dataset");
    dataset = { dataset_id: await uploadDataset(wanted.dataset, model) };
  }
  onStep("compilation");
  const body = {
    model_id: model,
    levels: wanted.levels,
    abis: wanted.abis,
    ...dataset,
    options: {
      exclude_ops: wanted.excludeOps,
      exclude_nodes: [],
      only_nodes: [],
      accelerators: ["nnapi"],
      min_subgraph_ops: 1,
      cpu_variants: wanted.cpuVariants,
      nnapi: {},
      precision: "float32" as const,
    },
    run_on: wanted.runOn,
  };
  return (await unwrap(client.POST("/v1/compilations", { body }))).id;
}

async function uploadModel(file: File): Promise<string> {
  const answer = client.POST("/v1/models", {
    // The generated type knows a file as text; the serializer sends the file itself.
    body: { file: file.name },
    bodySerializer: () => form({ file }),
  });
  return (await unwrap(answer)).id;
}

async function uploadDataset(file: File, modelId: string): Promise<string> {
  const answer = client.POST("/v1/datasets", {
    body: { file: file.name, model_id: modelId },
    bodySerializer: () => form({ file, model_id: modelId }),
  });
  return (await unwrap(answer)).id;
}

function form(fields: Record<string, string | File>): FormData {
  const data = new FormData();
  for (const [name, value] of Object.entries(fields)) data.append(name, value);
  return data;
}

const PLACE_BY_CODE: Record<string, Place> = {
  "compile.bad_level": "levels",
  "compile.bad_abi": "abis",
  "compile.bad_option": "options",
};

/** Where in the form a problem belongs: by its code, else by the step that was refused. */
export function placeOf(problem: Problem, step: Step): Place {
  const byCode = PLACE_BY_CODE[problem.code];
  if (byCode) return byCode;
  if (problem.code.startsWith("model.")) return "model";
  if (problem.code.startsWith("dataset.")) return "dataset";
  const aboutInput = problem.code === "request.invalid" && step !== "compilation";
  return aboutInput ? step : "form";
}

/** Operation types from a comma-separated list. */
export function parseOps(text: string): string[] {
  return [...new Set(text.split(/[\s,]+/).filter((name) => name !== ""))];
}
