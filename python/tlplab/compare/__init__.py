"""Questions about runs: how two of them differ, what alternatives change, and why some transactions take longer."""
