"""A verification rule that is lossless: Algorithm 1 written out, to be certified or changed.

rheo-exact certify examples/my_rule.py:verify --width 3 --depth 2 --budget 4
"""


def verify(p, tail, candidates, sampled, lead, chooser, at):
    """Verify the sampled candidate first, then the others in slot order, each against what is left of p."""
    left = list(p)
    order = sorted(range(len(candidates)), key=lambda i: i != sampled)
    for i in order:
        token = candidates[i]
        accepted = min(1, left[token] / tail[token]) if i == sampled else left[token]
        if chooser.accept(accepted):
            return token, i
        if i == sampled:
            left = [max(0, x - q) for x, q in zip(left, tail, strict=True)]
        else:
            left = [0 if v == token else x for v, x in enumerate(left)]
        mass = sum(left)
        left = [x / mass for x in left]
    return chooser.index(left), -1
