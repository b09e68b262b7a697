"""Run by Python with graphrag installed: GraphRAG's own query code builds contexts from exported parquet files.

    python graphrag_reader.py FOLDER

FOLDER has the tables, the vectors (embeddings.*.parquet) and question.json (question, vector). Prints one line of
JSON. Imports nothing of this project: it is no part of the environment that this runs in.
"""

import asyncio
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
from graphrag.query.indexer_adapters import (
    read_indexer_communities,
    read_indexer_covariates,
    read_indexer_entities,
    read_indexer_relationships,
    read_indexer_reports,
    read_indexer_text_units,
)
from graphrag.query.structured_search.global_search.community_context import GlobalCommunityContext
from graphrag.query.structured_search.local_search.mixed_context import LocalSearchMixedContext
from graphrag.tokenizer.get_tokenizer import get_tokenizer
from graphrag_vectors import VectorStore, VectorStoreDocument, VectorStoreSearchResult

LEVEL = 2


class ParquetVectors(VectorStore):
    """The vectors of an exported file, compared with all of them."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        frame = pd.read_parquet(path)
        self.ids = frame["id"].to_list()
        self.matrix = np.array(frame["embedding"].to_list())

    def connect(self, **_: object) -> None: ...

    def create_index(self, **_: object) -> None: ...

    def load_documents(self, documents: list[VectorStoreDocument], **_: object) -> None:
        raise NotImplementedError

    def similarity_search_by_vector(self, query_embedding, k=10, **_: object) -> list[VectorStoreSearchResult]:
        scores = self.matrix @ np.array(query_embedding)
        best = np.argsort(-scores)[:k]
        return [VectorStoreSearchResult(self._document(place), float(scores[place])) for place in best]

    def search_by_id(self, id: str, **_: object) -> VectorStoreDocument:
        return self._document(self.ids.index(id))

    def _document(self, place: int) -> VectorStoreDocument:
        return VectorStoreDocument(id=self.ids[place], vector=self.matrix[place].tolist())

    def count(self) -> int:
        return len(self.ids)

    def remove(self, ids: list[str]) -> None:
        raise NotImplementedError

    def update(self, document: VectorStoreDocument) -> None:
        raise NotImplementedError


def main(folder: Path) -> dict[str, object]:
    asked = json.loads((folder / "question.json").read_text())
    tables = {path.stem: pd.read_parquet(path) for path in folder.glob("*.parquet")}
    entities = read_indexer_entities(tables["entities"], tables["communities"], LEVEL)
    reports = read_indexer_reports(tables["community_reports"], tables["communities"], LEVEL)
    communities = read_indexer_communities(tables["communities"], tables["community_reports"])
    embedder = SimpleNamespace(embedding=lambda input: SimpleNamespace(first_embedding=asked["vector"]))
    local = LocalSearchMixedContext(
        entities=entities,
        entity_text_embeddings=ParquetVectors(folder / "embeddings.entity_description.parquet"),
        text_embedder=embedder,
        text_units=read_indexer_text_units(tables["text_units"]),
        community_reports=reports,
        relationships=read_indexer_relationships(tables["relationships"]),
        covariates={"claims": read_indexer_covariates(tables["covariates"])},
        tokenizer=get_tokenizer(),
    ).build_context(query=asked["question"])
    whole = GlobalCommunityContext(
        community_reports=reports, communities=communities, entities=entities, tokenizer=get_tokenizer()
    )
    of_reports = asyncio.run(whole.build_context(query=asked["question"]))
    return {
        "read": {"entities": len(entities), "reports": len(reports), "communities": len(communities)},
        "local": {name: len(rows) for name, rows in local.context_records.items()},
        "local_characters": len(local.context_chunks),
        "local_entities": local.context_records["entities"]["entity"].to_list()[:5],
        "global_batches": len(of_reports.context_chunks),
        "global_reports": sum(len(rows) for rows in of_reports.context_records.values()),
    }


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]))))
