"""Filters: `filter` selects documents and types, `scope` the allowed rows, `redaction` what of them is visible."""

from graphrag_assets.query.filters.filter import Filter, scope_of
from graphrag_assets.query.filters.scope import EVERYTHING, Scope

__all__ = ["EVERYTHING", "Filter", "Scope", "scope_of"]
