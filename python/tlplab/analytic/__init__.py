"""`tlplab model`: the closed forms of `tlplab.model` on the command line."""
