"""Questions about runs: the differences of two, the effects of alternatives, and the causes of slow transactions."""
