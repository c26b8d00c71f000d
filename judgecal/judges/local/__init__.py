"""The local judges: one file each, with one function of the file's name. A new one is a new file, and nothing else."""
