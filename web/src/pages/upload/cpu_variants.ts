import type { Schemas } from "../../api/client";
import type { Abi } from "./submission";

export type CpuVariant = Schemas["CpuVariant"];

interface Described {
  value: CpuVariant;
  abi: Abi;
  label: string;
  note: string;
}

const VARIANTS: readonly Described[] = [
  {
    value: "dotprod",
    abi: "arm64-v8a",
    label: "dotprod",
    note: "Cortex-A55, A76 and later",
  },
  { value: "fp16", abi: "arm64-v8a", label: "fp16", note: "the same; sums in float16" },
  { value: "i8mm", abi: "arm64-v8a", label: "i8mm", note: "Cortex-A510, A710 and later" },
  { value: "avx2", abi: "x86_64", label: "avx2", note: "Haswell, Zen and later" },
  { value: "avx512", abi: "x86_64", label: "avx512", note: "Ice Lake, Zen 4 and later" },
];

/** The variants that can be asked for with these ABIs. */
export function variantsOf(abis: readonly Abi[]): readonly Described[] {
  return VARIANTS.filter(({ abi }) => abis.includes(abi));
}
