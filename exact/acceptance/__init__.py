"""How much a method accepts, exactly: one layer, sweeps over trees, and the paper's Table 1."""
