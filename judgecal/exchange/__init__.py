"""What other tools write and read: exports, public sets, Mosaic's and MLflow's names."""
