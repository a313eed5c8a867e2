"""A look at a Linux machine through its physical memory alone: which processes run, what code they run, where their pages lie.

From below: `source` reads bytes at physical addresses, from an image file or by DMA through an adapter. `btf`, `elf` and `symbols` read
the files that say how the kernel was built; `structures` takes from them, or from a profile, where the fields of its structures
are. `kernel` finds the first task and the direct map in a memory of which nothing is known yet. On that stand `processes` (the task list),
`paging` and `pages` (page tables) and `code` (a process's text). `command` is the command line.

Memory that is looked at while its owner runs changes under the reader's eyes, and an image may be damaged. Nothing here believes a
pointer before it has looked at what it points to, every walk is bounded, and what could not be read is said.
"""
