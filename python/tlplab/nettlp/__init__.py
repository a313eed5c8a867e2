"""NetTLP: PCIe devices in software over UDP, and tools for their traffic on the network."""
