"""What other tools write and read: exports of tools, Mosaic's and MLflow's names."""
