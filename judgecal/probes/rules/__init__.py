"""Families of probes, a file a thought; a new one is a new file that offers `FAMILIES`."""
