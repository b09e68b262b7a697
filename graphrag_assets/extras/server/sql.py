"""SQL of clients: one SELECT on the published file, with limits on memory, rows and seconds."""

import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from graphrag_assets.errors import InvalidOption
from graphrag_assets.store.publication_reader import Reader, open_publication

MAX_ROWS = 1_000
MAX_CHARACTERS = 100_000
_LIMITS: dict[str, Any] = {"memory_limit": "512MB", "max_temp_directory_size": "0GB", "threads": 1}


@dataclass
class SqlQuery:
    """Runs queries, each on a connection of its own, to which nothing outside the file is open.

    Args:
        seconds: after which a query is ended.
    """

    seconds: float = 10.0

    def __call__(self, reader: Reader, query: str) -> dict[str, Any]:
        """Columns and rows, these as text, and whether rows were left out.

        Raises:
            InvalidOption: it is not one SELECT, or DuckDB rejects it, or it exceeds a limit.
        """
        connection = open_publication(Path(reader.path), limits=_LIMITS)
        ending = threading.Timer(self.seconds, connection.interrupt)
        try:
            statements = connection.extract_statements(query)
            if [statement.type for statement in statements] != [duckdb.StatementType.SELECT]:
                raise InvalidOption("The query must be one SELECT statement.")
            connection.execute("USE published")
            ending.start()
            found = connection.execute(statements[0])
            columns = [name for name, *_ in found.description or ()]
            rows = [[None if value is None else str(value) for value in row] for row in found.fetchmany(MAX_ROWS + 1)]
        except duckdb.InterruptException:
            raise InvalidOption(f"The query took longer than {self.seconds:g} seconds.") from None
        except duckdb.Error as error:
            raise InvalidOption(f"DuckDB rejects the query: {error}") from None
        finally:
            ending.cancel()
            connection.close()
        kept, size = [], 0
        for row in rows[:MAX_ROWS]:
            size += sum(len(value or "") for value in row)
            if size > MAX_CHARACTERS:
                break
            kept.append(row)
        return {"columns": columns, "rows": kept, "complete": len(kept) == len(rows)}
