import { problemOfError } from "../../api/problem";
import { useModels, useQuantizations, type Model, type Quantization } from "../../api/queries";
import { Badge } from "../../ui/Badge";
import { Command, EmptyState } from "../../ui/EmptyState";
import { formatBytes, shortHash } from "../../ui/format";
import { Moment } from "../../ui/Moment";
import { ProblemNotice } from "../../ui/ProblemNotice";
import { Loading, Panel, ScrollRegion, Section } from "../../ui/Section";
import styles from "./models.module.css";
import { lossText } from "./quantization";

/** Every model, newest first; quantized ones with the model they came from and what that cost. */
export function ModelList() {
  const models = useModels();
  const quantizations = useQuantizations();
  const error = models.error ?? quantizations.error;
  const known = models.data ?? [];
  return (
    <Section title="Models">
      {error && <ProblemNotice problem={problemOfError(error)} />}
      {models.isPending && <Loading what="models" />}
      {models.isSuccess && (
        <Panel>
          {known.length === 0 ? (
            <EmptyState title="Nothing was uploaded yet">
              <Command text="nnfarm quantize model.onnx --dataset samples.npz" />
            </EmptyState>
          ) : (
            <Table models={known} quantizations={quantizations.data ?? []} />
          )}
        </Panel>
      )}
    </Section>
  );
}

interface TableProps {
  models: readonly Model[];
  quantizations: readonly Quantization[];
}

function Table({ models, quantizations }: TableProps) {
  const names = new Map(models.map(({ id, name }) => [id, name]));
  const made = new Map(quantizations.map((one) => [one.id, one]));
  return (
    <ScrollRegion label="Models">
      <table className={`${styles.table ?? ""} stack`}>
        <thead>
          <tr>
            <th scope="col">Model</th>
            <th scope="col">Format</th>
            <th scope="col">Size</th>
            <th scope="col">Quantized from</th>
            <th scope="col">Loss</th>
            <th scope="col">When</th>
          </tr>
        </thead>
        <tbody>
          {models.map((model) => {
            const origin = model.derived_from;
            const quantization = origin ? made.get(origin.quantization_id) : undefined;
            return (
              <tr key={model.id}>
                <th scope="row">
                  <span className={styles.name}>{model.name}</span>
                  <div className="soft tiny mono">{shortHash(model.sha256)}</div>
                </th>
                <td data-label="Format">{model.format}</td>
                <td data-label="Size">{formatBytes(model.size_bytes)}</td>
                <td data-label="Quantized from">
                  {origin ? (
                    <>
                      {names.get(origin.model_id) ?? origin.model_id}{" "}
                      <Badge tone="info">{origin.options.activation}</Badge>
                    </>
                  ) : (
                    "–"
                  )}
                </td>
                <td data-label="Loss">{quantization ? lossText(quantization.cost) : "–"}</td>
                <td data-label="When">
                  <Moment at={model.created_at} />
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </ScrollRegion>
  );
}
