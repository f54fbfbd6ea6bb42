"""Stage 10: results -> tables and pages; never recomputes."""

from lograb.report.audit_page import write_audit
from lograb.report.comparison import Comparison, Method
from lograb.report.page import check_page_name, check_table_name, headline, write_page

__all__ = ["Comparison", "Method", "check_page_name", "check_table_name", "headline", "write_audit", "write_page"]
