"""Reports that a person sends to a colleague: one self-contained page of verdicts, trees, laws and scope."""

from exact.reporting.certificates import Entry
from exact.reporting.functions import function_page
from exact.reporting.page import certificates_page

__all__ = ["Entry", "certificates_page", "function_page"]
