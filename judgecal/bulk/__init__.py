"""Many tables at once: Ray."""
