"""A view of a Linux machine through its physical memory alone: the running processes, their code, and the place of their pages.

From below: `source` reads bytes at physical addresses, from an image file or by DMA through an adapter. `btf`, `elf` and `symbols` read
the files that describe the kernel's build; `structures` takes from them, or from a profile, where the fields of its structures
are. `kernel` finds the first task and the direct map in a memory of which nothing is known yet. On that stand `processes` (the task list),
`paging` and `pages` (page tables) and `code` (a process's text). `command` is the command line.

Memory that is looked at while its owner runs changes under the reader's eyes, and an image may be damaged. Nothing here believes a
pointer before it has looked at its target, every walk is bounded, and unreadable memory is reported.
"""
