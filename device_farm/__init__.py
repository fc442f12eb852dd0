"""The device-farm agent: leases runs from the service and carries them out on phones."""
