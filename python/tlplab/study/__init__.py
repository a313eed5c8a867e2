"""Studies: many points of an experiment, and questions about them. `crates/study` runs them; here are the commands, tables, files and pictures."""
