import { describe, expect, it } from "vitest";

import { ProblemError, problemOf, problemOfError } from "./problem";

const BODY = {
  type: "urn:nnfarm:error:compile.bad_level",
  code: "compile.bad_level",
  title: "The NNAPI feature level is out of range",
  status: 422,
  detail: "Feature level 9 is not one of 1 to 8.",
  error_class: "user",
};

describe("problemOf", () => {
  it("takes a problem body as it is", () => {
    expect(problemOf(BODY, 422)).toBe(BODY);
  });

  it.each([undefined, null, "<html>", {}, { code: 1, title: "", detail: "" }])(
    "tells the status when the body is %j",
    (body) => {
      const problem = problemOf(body, 502);
      expect(problem.code).toBe("http.502");
      expect(problem.detail).toContain("502");
      expect(problem.error_class).toBe("infra");
    },
  );
});

describe("problemOfError", () => {
  it("unpacks a refusal", () => {
    const error = new ProblemError(problemOf(BODY, 422));
    expect(problemOfError(error).code).toBe("compile.bad_level");
  });

  it("tells an unreachable service from a fault of the page", () => {
    expect(problemOfError(new TypeError("Failed to fetch")).code).toBe("page.unreachable");
    expect(problemOfError(new Error("boom")).code).toBe("page.internal");
    expect(problemOfError("boom").detail).toBe("boom");
  });
});
