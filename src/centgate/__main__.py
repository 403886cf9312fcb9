"""`python -m centgate`."""

from centgate.cli import main

main()
