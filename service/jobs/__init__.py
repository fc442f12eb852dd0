"""What all kinds of job share: state, leases, retries, events; docs/adr/0014-kinds-of-job.md."""
