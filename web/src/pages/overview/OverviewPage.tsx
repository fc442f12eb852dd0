import { useTitle } from "../../ui/useTitle";
import { CompilationList } from "../compilations/CompilationList";
import { DeviceList } from "../devices/DeviceList";

/** What the farm did lately, and with what. */
export function OverviewPage() {
  useTitle("Compilations");
  return (
    <>
      <h1 className="visually-hidden">Compilations and devices</h1>
      <CompilationList />
      <DeviceList />
    </>
  );
}
