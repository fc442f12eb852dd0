import { useTitle } from "../../ui/useTitle";
import { ModelList } from "./ModelList";
import { QuantizationList } from "./QuantizationList";
import { TuningList } from "./TuningList";

/** What can be compiled: uploaded models, and those made of them. */
export function ModelsPage() {
  useTitle("Models");
  return (
    <>
      <h1 className="visually-hidden">Models</h1>
      <ModelList />
      <QuantizationList />
      <TuningList />
    </>
  );
}
