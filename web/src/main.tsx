import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { createBrowserRouter, RouterProvider } from "react-router";

import { ProblemError } from "./api/problem";
import { CompilationPage } from "./pages/compilations/CompilationPage";
import { DevicesPage } from "./pages/devices/DevicesPage";
import { ModelsPage } from "./pages/models/ModelsPage";
import { NotFoundPage } from "./pages/overview/NotFoundPage";
import { OverviewPage } from "./pages/overview/OverviewPage";
import { UploadPage } from "./pages/upload/UploadPage";
import { Layout } from "./ui/Layout";
import "./ui/tokens.css";
import "./ui/base.css";

const RETRY_LIMIT = 2;

const queries = new QueryClient({
  defaultOptions: {
    queries: {
      // Only what is the infrastructure's turn is worth asking again (docs: error classes).
      retry: (count, error) => {
        const refused = error instanceof ProblemError && error.problem.error_class !== "infra";
        return !refused && count < RETRY_LIMIT;
      },
    },
  },
});

const router = createBrowserRouter([
  {
    element: <Layout />,
    children: [
      { path: "/", element: <OverviewPage /> },
      { path: "/compilations/:id", element: <CompilationPage /> },
      { path: "/models", element: <ModelsPage /> },
      { path: "/devices", element: <DevicesPage /> },
      { path: "/upload", element: <UploadPage /> },
      { path: "*", element: <NotFoundPage /> },
    ],
  },
]);

const root = document.getElementById("root");
if (root === null) throw new Error("index.html has no element #root");
createRoot(root).render(
  <StrictMode>
    <QueryClientProvider client={queries}>
      <RouterProvider router={router} />
    </QueryClientProvider>
  </StrictMode>,
);
