import { Link } from "react-router";

import { EmptyState } from "../../ui/EmptyState";
import { useTitle } from "../../ui/useTitle";

export function NotFoundPage() {
  useTitle("No such page");
  return (
    <EmptyState title="There is no such page">
      <p>
        Go to the <Link to="/">compilations</Link> or the <Link to="/devices">devices</Link>.
      </p>
    </EmptyState>
  );
}
