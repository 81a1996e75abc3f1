"""Pictures (extra `plot`): draft trees, classes and laws, and the one look that all pictures of the project share."""

from exact.drawing.style import COLOURS, check_picture_file, rc_params, save_figure, style

__all__ = ["COLOURS", "check_picture_file", "rc_params", "save_figure", "style"]
