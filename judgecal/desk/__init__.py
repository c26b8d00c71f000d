"""The labelling page: people label and adjudicate in a browser, on this machine or in the same room."""
