"""Linux guests: an unmodified Linux as the software of an experiment's host.

`kernel` finds the result of `make linux`, `initramfs` adds the guest's script and files, `running` boots it and carries its console,
`command` is `tlplab guest`.
"""
