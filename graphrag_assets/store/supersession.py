"""Which statements a later one supersedes, and the predicates of relationships with their times, as SQL."""

from importlib.resources import files

_SQL = files("graphrag_assets.store").joinpath("sql")
SUPERSESSION = _SQL.joinpath("supersession.sql").read_text()
"""Query for id, valid_until and superseded_by of the rows of `facts` that are superseded."""
PREDICATES = _SQL.joinpath("predicates.sql").read_text()
"""Query for number and predicates of the relationships in `chosen` by the mentions in `said` and their `times`."""
