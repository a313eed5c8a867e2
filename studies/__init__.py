"""Published systems, run again by `tlplab reproduce`: for each paper its experiments, the code that lays them beside it, and the page."""
