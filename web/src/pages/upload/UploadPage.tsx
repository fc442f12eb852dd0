import { useMutation } from "@tanstack/react-query";
import { useRef, useState, type SyntheticEvent } from "react";
import { useNavigate } from "react-router";

import { problemOfError } from "../../api/problem";
import { Button } from "../../ui/Button";
import { ANDROID_BY_LEVEL, LEVELS } from "../../ui/levels";
import { ProblemNotice } from "../../ui/ProblemNotice";
import { useTitle } from "../../ui/useTitle";
import { variantsOf, type CpuVariant } from "./cpu_variants";
import { Choices, FileField, OpsField } from "./fields";
import {
  parseOps,
  placeOf,
  submit,
  type Abi,
  type Place,
  type RunOn,
  type Step,
  type Submission,
} from "./submission";
import styles from "./upload.module.css";

const ABIS: readonly Abi[] = ["arm64-v8a", "armeabi-v7a", "x86_64"];

const RUN_ON: readonly { value: RunOn; label: string }[] = [
  { value: "all", label: "Every device that fits" },
  { value: "any", label: "Any one device" },
  { value: "none", label: "None, compile only" },
];

const STEP_WORDS: Record<Step, string> = {
  model: "Uploading the model…",
  dataset: "Uploading the dataset…",
  compilation: "Starting the compilation…",
};

/** A form that uploads a model and starts a compilation. */
export function UploadPage() {
  useTitle("New compilation");
  const navigate = useNavigate();
  const [model, setModel] = useState<File | null>(null);
  const [dataset, setDataset] = useState<File | null>(null);
  const [levels, setLevels] = useState<readonly number[]>([1, 4, 7]);
  const [abis, setAbis] = useState<readonly Abi[]>(["arm64-v8a"]);
  const [variants, setVariants] = useState<readonly CpuVariant[]>([]);
  const [ops, setOps] = useState("");
  const [runOn, setRunOn] = useState<RunOn>("all");
  const [missing, setMissing] = useState<Partial<Record<Place, string>>>({});
  const [step, setStep] = useState<Step>("model");
  const lastStep = useRef<Step>("model");

  const sending = useMutation({
    mutationFn: (wanted: Submission) =>
      submit(wanted, (next) => {
        lastStep.current = next;
        setStep(next);
      }),
    onSuccess: (id) => navigate(`/compilations/${id}`),
  });
  const problem = sending.error ? problemOfError(sending.error) : null;
  const noticeAt = (place: Place) =>
    problem && placeOf(problem, step) === place && <ProblemNotice problem={problem} />;

  const offered = variantsOf(abis);

  const start = (event: SyntheticEvent) => {
    event.preventDefault();
    const gaps = {
      ...(model === null && { model: "Choose a model file." }),
      ...(levels.length === 0 && { levels: "Choose one level at least." }),
      ...(abis.length === 0 && { abis: "Choose one ABI at least." }),
    };
    setMissing(gaps);
    if (model === null || Object.keys(gaps).length > 0) return;
    sending.mutate({
      model,
      dataset,
      levels: [...levels],
      abis: [...abis],
      cpuVariants: offered.map(({ value }) => value).filter((one) => variants.includes(one)),
      excludeOps: parseOps(ops),
      runOn,
    });
  };

  return (
    <form className={styles.form} onSubmit={start} noValidate>
      <h1>New compilation</h1>
      <FileField
        label="Model"
        hint="ONNX, TFLite or PyTorch (.pt2), one file"
        accept=".onnx,.zip,.tflite,.pt2"
        error={missing.model}
        onFile={setModel}
      >
        {noticeAt("model")}
      </FileField>
      <FileField
        label="Dataset (optional)"
        hint="NumPy .npz: one array an input, stacked on axis 0; an int array “labels” gives top-1"
        accept=".npz"
        onFile={setDataset}
      >
        {noticeAt("dataset")}
      </FileField>
      <Choices
        legend="NNAPI feature levels"
        type="checkbox"
        options={LEVELS.map((level) => ({
          value: level,
          label: `Level ${level}`,
          note: ANDROID_BY_LEVEL[level],
        }))}
        chosen={levels}
        error={missing.levels}
        onChange={setLevels}
      >
        {noticeAt("levels")}
      </Choices>
      <Choices
        legend="ABIs"
        type="checkbox"
        options={ABIS.map((abi) => ({ value: abi, label: abi }))}
        chosen={abis}
        error={missing.abis}
        onChange={setAbis}
      >
        {noticeAt("abis")}
      </Choices>
      {offered.length > 0 && (
        <Choices
          legend="Code for newer processors (optional)"
          type="checkbox"
          options={offered}
          chosen={variants}
          onChange={setVariants}
        />
      )}
      <Choices
        legend="Run on"
        type="radio"
        options={RUN_ON}
        chosen={[runOn]}
        onChange={([first]) => {
          if (first) setRunOn(first);
        }}
      />
      <OpsField value={ops} onChange={setOps}>
        {noticeAt("options")}
      </OpsField>
      {noticeAt("form")}
      <div className={styles.actions}>
        <Button primary type="submit" disabled={sending.isPending}>
          Compile
        </Button>
        <span role="status" className="soft">
          {sending.isPending && STEP_WORDS[step]}
        </span>
      </div>
    </form>
  );
}
