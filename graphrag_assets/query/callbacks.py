"""Functions of the caller that a search calls while it is in progress."""

from graphrag_assets.contracts.answering import Usage
from graphrag_assets.query.context import Context
from graphrag_assets.query.results import Failure


class Callbacks:
    """The functions that a search calls. Here they do nothing: pass an object of a subclass that overrides some.

    They are called in the thread of the models' event loop, which waits for them: they must return at once. An error
    that one raises ends the search.
    """

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def on_context(self, context: Context) -> None:
        """A context was built; DRIFT and planned search build several."""

    def on_call(self, category: str, usage: Usage) -> None:
        """A model answered; the category as in `Answer.usage`. An answer from the ledger has no calls."""

    def on_error(self, failure: Failure) -> None:
        """A call failed, or a name of the filter is missing, and the search goes on without it."""
