"""What is plugged in: phones, runtime bundles, parts already downloaded."""
