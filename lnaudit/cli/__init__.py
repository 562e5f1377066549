"""The command line: one thin file a command; only here is anything printed and a process ended."""
