import { defineConfig } from "vitest/config";

// Apart from vite.config.ts, so that a build needs no test tools installed.
export default defineConfig({
  test: { environment: "node", include: ["src/**/*.test.ts"] },
});
