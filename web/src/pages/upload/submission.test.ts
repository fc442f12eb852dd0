import { expect, it } from "vitest";

import { problemOf } from "../../api/problem";
import { parseOps, placeOf, type Step } from "./submission";

function problem(code: string) {
  return { ...problemOf(undefined, 422), code };
}

it.each<[string, Step, string]>([
  ["compile.bad_level", "compilation", "levels"],
  ["compile.bad_abi", "compilation", "abis"],
  ["compile.bad_option", "compilation", "options"],
  ["model.unreadable", "model", "model"],
  ["dataset.mismatch", "dataset", "dataset"],
  ["dataset.mismatch", "compilation", "dataset"],
  ["request.invalid", "dataset", "dataset"],
  ["request.invalid", "compilation", "form"],
  ["infra.unavailable", "model", "form"],
])("%s while sending the %s is shown at %s", (code, step, place) => {
  expect(placeOf(problem(code), step)).toBe(place);
});

it.each([
  ["", []],
  [" Softmax, Erf ,,Softmax", ["Softmax", "Erf"]],
  ["Softmax Erf", ["Softmax", "Erf"]],
])("operation types of %j", (text, ops) => {
  expect(parseOps(text)).toEqual(ops);
});
