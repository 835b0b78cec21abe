"""Pages about copies and fleets, model cards, and the chart of a frontier; none of them asks an original."""

from ectype.report._answers import PaidAnswers
from ectype.report._card import model_card
from ectype.report._charts import frontier_chart
from ectype.report._markdown import markdown_table
from ectype.report._page import write_page, write_report

__all__ = ["PaidAnswers", "frontier_chart", "markdown_table", "model_card", "write_page", "write_report"]
