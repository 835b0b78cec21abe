"""`python -m ectype` is the command `ectype`."""

from ectype.cli import main

main()
