"""From a method and its models to a verdict: certificates, documents, counterexamples, `assert_lossless`."""
