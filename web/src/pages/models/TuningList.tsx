import { problemOfError } from "../../api/problem";
import { useTunings, type Tuning } from "../../api/queries";
import { Moment } from "../../ui/Moment";
import { ProblemNotice } from "../../ui/ProblemNotice";
import { Panel, ScrollRegion, Section } from "../../ui/Section";
import { JobStatusCell } from "./JobStatusCell";
import styles from "./models.module.css";
import { bestText, keptText, placeText, timesText } from "./tuning";

/** Tunings, newest first, with live progress; nothing where there are none. */
export function TuningList() {
  const list = useTunings();
  const tunings = list.data ?? [];
  if (list.error) return <ProblemNotice problem={problemOfError(list.error)} />;
  if (tunings.length === 0) return null;
  return (
    <Section title="Tunings">
      <Panel>
        <ScrollRegion label="Tunings">
          <table className={`${styles.table ?? ""} stack`}>
            <thead>
              <tr>
                <th scope="col">Model</th>
                <th scope="col">Status</th>
                <th scope="col">Measured on</th>
                <th scope="col">Faster kernels</th>
                <th scope="col">Greatest gain</th>
                <th scope="col">Whole model</th>
                <th scope="col">When</th>
              </tr>
            </thead>
            <tbody>
              {tunings.map((one) => (
                <Row key={one.id} tuning={one} />
              ))}
            </tbody>
          </table>
        </ScrollRegion>
      </Panel>
    </Section>
  );
}

function Row({ tuning }: { tuning: Tuning }) {
  const { model, records } = tuning;
  return (
    <tr>
      <th scope="row">
        <span className={styles.name}>{model.name}</span>
      </th>
      <td data-label="Status">
        <JobStatusCell job={tuning} />
      </td>
      <td data-label="Measured on">{placeText(tuning)}</td>
      <td data-label="Faster kernels">{keptText(records)}</td>
      <td data-label="Greatest gain">{bestText(records)}</td>
      <td data-label="Whole model">{timesText(tuning)}</td>
      <td data-label="When">
        <Moment at={tuning.created_at} />
      </td>
    </tr>
  );
}
