import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin } from "vite";

// `npm run dev` proxies API calls to a service on this machine; the built page always asks the
// host it was loaded from.
const service = process.env.NNFARM_DEV_SERVICE ?? "http://127.0.0.1:8000";

// The service's /docs needs these as they are; they are no part of the page's own bundle.
const swaggerFiles = [
  "swagger-ui.css",
  "swagger-ui-bundle.js",
  "swagger-ui-bundle.js.LICENSE.txt",
  "favicon-32x32.png",
];

function copySwaggerUi(): Plugin {
  const folder = dirname(createRequire(import.meta.url).resolve("swagger-ui-dist/package.json"));
  return {
    name: "copy-swagger-ui",
    apply: "build",
    generateBundle() {
      for (const name of swaggerFiles) {
        const source = readFileSync(join(folder, name));
        this.emitFile({ type: "asset", fileName: `swagger-ui/${name}`, source });
      }
    },
  };
}

export default defineConfig({
  plugins: [react(), copySwaggerUi()],
  build: { target: "es2022", sourcemap: false },
  server: {
    host: "127.0.0.1",
    proxy: Object.fromEntries(
      ["/v1", "/docs", "/openapi.json", "/swagger-ui"].map((path) => [path, service]),
    ),
  },
});
