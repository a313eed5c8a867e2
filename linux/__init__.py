"""The Linux guest for virtual time: README.md."""
