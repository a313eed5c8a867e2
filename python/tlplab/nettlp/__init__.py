"""NetTLP: PCIe devices in software over UDP, and what is seen of them on the network."""
