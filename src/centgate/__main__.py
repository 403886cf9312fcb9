"""`python -m centgate`."""

from centgate.cli.main import main

main()
