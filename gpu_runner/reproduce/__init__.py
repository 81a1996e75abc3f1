"""The paper's tables and figures: experiments, run folders, results."""
