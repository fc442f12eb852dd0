import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

// `npm run dev` proxies API calls to a service on this machine; the built page always asks the
// host it was loaded from.
const service = process.env.NNFARM_DEV_SERVICE ?? "http://127.0.0.1:8000";

export default defineConfig({
  plugins: [react()],
  build: { target: "es2022", sourcemap: false },
  server: { host: "127.0.0.1", proxy: { "/v1": service, "/openapi.json": service } },
  test: { environment: "node", include: ["src/**/*.test.ts"] },
});
