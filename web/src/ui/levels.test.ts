import { expect, it } from "vitest";

import { levelRanges } from "./levels";

it.each([
  [[], ""],
  [[4], "4"],
  [[3, 1, 2, 7, 4], "1–4, 7"],
  [[1, 3, 5], "1, 3, 5"],
  [[2, 2, 3], "2–3"],
])("levels %j read %s", (levels, text) => {
  expect(levelRanges(levels)).toBe(text);
});
