import { problemOfError } from "../../api/problem";
import { useQuantizations, type Quantization } from "../../api/queries";
import { formatError } from "../../ui/format";
import { Moment } from "../../ui/Moment";
import { ProblemNotice } from "../../ui/ProblemNotice";
import { Panel, ScrollRegion, Section } from "../../ui/Section";
import { JobStatusCell } from "./JobStatusCell";
import styles from "./models.module.css";
import { lossText, optionsText, top1Text } from "./quantization";

/** Quantizations, newest first, with live progress; nothing where there are none. */
export function QuantizationList() {
  const list = useQuantizations();
  const quantizations = list.data ?? [];
  if (list.error) return <ProblemNotice problem={problemOfError(list.error)} />;
  if (quantizations.length === 0) return null;
  return (
    <Section title="Quantizations">
      <Panel>
        <ScrollRegion label="Quantizations">
          <table className={`${styles.table ?? ""} stack`}>
            <thead>
              <tr>
                <th scope="col">Model</th>
                <th scope="col">Status</th>
                <th scope="col">Options</th>
                <th scope="col">Top-1</th>
                <th scope="col">Loss</th>
                <th scope="col">Largest error</th>
                <th scope="col">When</th>
              </tr>
            </thead>
            <tbody>
              {quantizations.map((one) => (
                <Row key={one.id} quantization={one} />
              ))}
            </tbody>
          </table>
        </ScrollRegion>
      </Panel>
    </Section>
  );
}

function Row({ quantization }: { quantization: Quantization }) {
  const { cost, model } = quantization;
  return (
    <tr>
      <th scope="row">
        <span className={styles.name}>{model.name}</span>
      </th>
      <td data-label="Status">
        <JobStatusCell job={quantization} />
      </td>
      <td data-label="Options">{optionsText(quantization.options)}</td>
      <td data-label="Top-1">{top1Text(cost)}</td>
      <td data-label="Loss">{lossText(cost)}</td>
      <td data-label="Largest error">{cost ? formatError(cost.max_abs_error) : "–"}</td>
      <td data-label="When">
        <Moment at={quantization.created_at} />
      </td>
    </tr>
  );
}
