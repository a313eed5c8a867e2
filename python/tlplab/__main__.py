"""`python -m tlplab` is `tlplab`."""

from tlplab.cli import main

main()
