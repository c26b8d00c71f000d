"""The version, below everything, so that whoever quotes it need not import the package's face."""

__version__ = "0.1.0"
