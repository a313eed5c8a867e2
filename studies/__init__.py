"""Published systems, run again by `tlplab reproduce`: for each paper its experiments, the code that compares them with it, and the page."""
