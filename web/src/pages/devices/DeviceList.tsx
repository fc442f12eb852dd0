import { problemOfError } from "../../api/problem";
import { useDevices, type Device } from "../../api/queries";
import { Badge, StatusBadge } from "../../ui/Badge";
import { Command, EmptyState } from "../../ui/EmptyState";
import { ANDROID_BY_LEVEL } from "../../ui/levels";
import { Moment } from "../../ui/Moment";
import { ProblemNotice } from "../../ui/ProblemNotice";
import { Loading, Panel, ScrollRegion, Section } from "../../ui/Section";
import styles from "./devices.module.css";

/** Every phone the agents announced, real or virtual. */
export function DeviceList() {
  const devices = useDevices();
  const known = devices.data ?? [];
  return (
    <Section title="Devices" note={known.length > 0 && summary(known)}>
      {devices.error && <ProblemNotice problem={problemOfError(devices.error)} />}
      {devices.isPending && <Loading what="devices" />}
      {devices.isSuccess && (
        <Panel>{known.length === 0 ? <NoDevices /> : <DeviceTable devices={known} />}</Panel>
      )}
    </Section>
  );
}

function summary(devices: readonly Device[]): string {
  const usable = devices.filter(({ state }) => state === "online" || state === "busy").length;
  return `${usable} of ${devices.length} usable`;
}

function NoDevices() {
  return (
    <EmptyState title="No phone is attached">
      <p>
        Plug in a phone with USB debugging and start an agent on that machine; it announces its
        devices here. Without a phone, the agent can bring virtual ones.
      </p>
      <Command
        text={`NNFARM_URL=${window.location.origin} NNFARM_AGENT_TOKEN=… python -m device_farm.agent`}
      />
    </EmptyState>
  );
}

function DeviceTable({ devices }: { devices: readonly Device[] }) {
  return (
    <ScrollRegion label="Devices">
      <table className={`${styles.table ?? ""} stack`}>
        <thead>
          <tr>
            <th scope="col">Device</th>
            <th scope="col">State</th>
            <th scope="col">NNAPI level</th>
            <th scope="col">Android</th>
            <th scope="col">ABIs</th>
            <th scope="col">Accelerators</th>
            <th scope="col">Agent</th>
            <th scope="col">Seen</th>
          </tr>
        </thead>
        <tbody>
          {devices.map((device) => (
            <DeviceRow key={device.id} device={device} />
          ))}
        </tbody>
      </table>
    </ScrollRegion>
  );
}

function DeviceRow({ device }: { device: Device }) {
  const { description } = device;
  const level = description.feature_level;
  return (
    <tr>
      <th scope="row">
        <span className={styles.name}>
          {description.name}
          {description.simulated && <Badge tone="cpu">virtual</Badge>}
        </span>
        <span className="soft tiny">
          {description.model} · {description.serial}
        </span>
      </th>
      <td data-label="State">
        <StatusBadge status={device.state} />
        {description.reason_unusable !== "" && (
          <div className="soft tiny">{description.reason_unusable}</div>
        )}
      </td>
      <td data-label="NNAPI level">
        {level === 0 ? <span className="soft">no NNAPI</span> : level}
      </td>
      <td data-label="Android">
        API {description.sdk_level}
        {level > 0 && <div className="soft tiny">{ANDROID_BY_LEVEL[level]}</div>}
      </td>
      <td data-label="ABIs">
        {description.abis.join(", ")}
        {description.cpu_variants.length > 0 && (
          <div className="soft tiny">{description.cpu_variants.join(", ")}</div>
        )}
      </td>
      <td data-label="Accelerators">
        <Accelerators device={device} />
      </td>
      <td data-label="Agent">{device.agent_name}</td>
      <td data-label="Seen">
        <Moment at={device.last_seen_at} />
      </td>
    </tr>
  );
}

function Accelerators({ device }: { device: Device }) {
  const { accelerators } = device.description;
  if (accelerators.length === 0) return <span className="soft">none</span>;
  return (
    <ul className={styles.list}>
      {accelerators.map((one) => (
        <li key={one.name}>
          {one.name}{" "}
          <span className="soft tiny">
            {one.type} · {one.version} · level {one.feature_level}
          </span>
        </li>
      ))}
    </ul>
  );
}
