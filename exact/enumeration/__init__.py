"""Every outcome of a program with its exact weight: walks, rationals, tree classes and the law of cycles."""
