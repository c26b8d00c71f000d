"""The local judges: one file each, with one function of the file's name. A new one is a new file, and nothing
else.

The first paragraph of a file's docstring says what its verdict is; `SCALE` is its scale, `SOURCE` where the
rule comes from, `PACKAGES` (package -> the setting that needs it) what is not always installed. Keyword-only
parameters with a default are settings (`judges/settings.py`). What several rules share is in modules with a
leading underscore, whose texts are part of the fingerprints too.
"""
