"""Filters: `filter` selects documents and entity types, `scope` the rows, `redaction` what these rows show."""

from graphrag_assets.query.filters.filter import Filter, scope_of
from graphrag_assets.query.filters.scope import EVERYTHING, Scope

__all__ = ["EVERYTHING", "Filter", "Scope", "scope_of"]
