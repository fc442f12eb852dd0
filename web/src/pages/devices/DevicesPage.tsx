import { useTitle } from "../../ui/useTitle";
import { DeviceList } from "./DeviceList";

export function DevicesPage() {
  useTitle("Devices");
  return (
    <>
      <h1 className="visually-hidden">Devices</h1>
      <DeviceList />
    </>
  );
}
