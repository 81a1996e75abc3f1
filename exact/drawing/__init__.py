"""Pictures (extra `plot`): draft trees, classes and laws, and the one look that all pictures of the project share."""

from exact.drawing.certificates import draw_certificates
from exact.drawing.laws import draw_law, draw_table1
from exact.drawing.layout import Names
from exact.drawing.panels import Picture
from exact.drawing.style import COLOURS, CYCLE, rc_params, save_figure, style
from exact.drawing.trees import Section, class_section, draw_classes, draw_sections, draw_tree, draw_trees

__all__ = [
    "COLOURS",
    "CYCLE",
    "Names",
    "Picture",
    "Section",
    "class_section",
    "draw_certificates",
    "draw_classes",
    "draw_law",
    "draw_sections",
    "draw_table1",
    "draw_tree",
    "draw_trees",
    "rc_params",
    "save_figure",
    "style",
]
