"""Builds the guest's kernel and its initial file system; linux/README.md."""
