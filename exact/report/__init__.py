"""Reports that a person sends to a colleague: one self-contained page of verdicts, trees, laws and scope."""

from exact.report.figures import draw_certificates, draw_law, draw_table1
from exact.report.html import Entry, certificates_page, function_page
from exact.report.panels import Picture
from exact.report.style import COLOURS, CYCLE, rc_params, save_figure, style
from exact.report.text_boxes import Names
from exact.report.trees import Section, class_section, draw_classes, draw_sections, draw_tree, draw_trees

__all__ = [
    "COLOURS",
    "CYCLE",
    "Entry",
    "Names",
    "Picture",
    "Section",
    "certificates_page",
    "class_section",
    "draw_certificates",
    "draw_classes",
    "draw_law",
    "draw_sections",
    "draw_table1",
    "draw_tree",
    "draw_trees",
    "function_page",
    "rc_params",
    "save_figure",
    "style",
]
