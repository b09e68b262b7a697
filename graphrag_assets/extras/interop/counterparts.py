"""The settings that the keys of GraphRAG's `settings.yaml` become, and why other keys have no counterpart."""

SETTINGS = {
    "chunks.size": "chunk_size",
    "input.text_column": "text_column",
    "input.title_column": "title_column",
    "input.id_column": "id_column",
    "input.encoding": "text_encoding",
    "input.file_pattern": "file_pattern",
    "extract_graph.max_gleanings": "max_gleanings",
    "cluster_graph.max_cluster_size": "max_cluster_size",
    "extract_claims.description": "claim_description",
    "concurrent_requests": "concurrency",
}
"""Keys whose values are a setting's. Keys of GraphRAG 3 are renamed to those of GraphRAG 2 first (`RENAMED`)."""

RENAMED = {"chunking": ("chunks",), "input_storage": ("input", "storage"), "output_storage": ("output",)}

_ELSEWHERE = "tables and vectors are in the index folder, index/ in GRAPHRAG_DATA"
_VECTOR_SIZE = (
    "vectors have the size that the model gives; "
    'GRAPHRAG_MODEL_PARAMETERS={"embedding": {"dimensions": N}} asks for another'
)
_FAST = "GRAPHRAG_METHOD=fast finds names by its own method; docs/models.md"
_PARAMETER = "set query in GRAPHRAG_MODEL_PARAMETERS, which holds for all answers to questions"

REASONS = {
    "async_mode": "calls are always asynchronous",
    "input.type": "formats are recognized by the names of the files",
    "input.file_type": "formats are recognized by the names of the files",
    "input.file_filter": "questions can be limited to documents by their columns: rag.local(…, metadata=…)",
    "input.metadata": "all columns of structured files are kept, in documents.raw_data; GRAPHRAG_METADATA_COLUMNS puts "
    "some before the text",
    "input.storage": "set GRAPHRAG_INPUT to the URL of the folder; credentials come from the environment",
    "chunks.prepend_metadata": "set GRAPHRAG_METADATA_COLUMNS to the columns",
    "chunks.chunk_size_includes_metadata": "metadata does not count as tokens of a text unit",
    **dict.fromkeys(("output", "outputs", "update_index_output", "update_output_storage"), _ELSEWHERE),
    **dict.fromkeys(("table_provider", "vector_store", "embed_text.vector_store_id"), _ELSEWHERE),
    **{f"vector_store.{name}": _VECTOR_SIZE for name in ("vector_size", "index_schema", "embeddings_schema")},
    "cache": "the ledger keeps all answers; GRAPHRAG_LEDGER_URL moves it to another database",
    "reporting": "logs are Dagster's, and errors are rows of index_errors",
    "root_dir": "paths are relative to the folder that a command is started in",
    "snapshots": "`graphrag-assets publications export` writes the graph and the vectors",
    "umap": "the map has its own layout",
    "embed_graph": "the graph ranks by personalized PageRank, without vectors of its nodes",
    "prune_graph": "all entities, relationships and components of the graph stay",
    "extract_graph_nlp": _FAST,
    "chunks.overlap": "fixed: 100 tokens, as by default in GraphRAG",
    "cluster_graph.seed": "fixed: the same documents make the same index",
    "summarize_descriptions.max_length": "fixed: 200 words",
    "community_reports.max_length": "fixed: 1500 words",
    "community_reports.max_input_length": "fixed: 8000 tokens, as by default in GraphRAG",
    "cluster_graph.use_lcc": "all components are clustered, not the largest alone",
    "summarize_descriptions.max_input_tokens": "long lists of descriptions are summarized in parts",
    "embed_text.batch_size": "no setting; requests are filled up to a fixed size",
    "embed_text.batch_max_tokens": "no setting; requests are filled up to a fixed size",
    "embed_text.names": "text units, entities and reports are all embedded",
    "*.model_instance_name": "the ledger is not divided; llm_calls has the task of each call",
    "*.strategy": "no counterpart",
    **dict.fromkeys(
        ("local_search", "global_search", "drift_search", "basic_search"), "options of each question: docs/query.md"
    ),
    "drift_search.concurrency": "calls of questions share GRAPHRAG_CONCURRENCY",
    **{
        f"drift_search.{name}": _PARAMETER
        for name in (
            *("reduce_max_tokens", "reduce_temperature", "reduce_max_completion_tokens", "local_search_temperature"),
            *("local_search_top_p", "local_search_n", "local_search_llm_max_gen_tokens"),
            *("local_search_llm_max_gen_completion_tokens", "primer_llm_max_tokens"),
        )
    },
}
"""Why a key, or a section, is not translated. The longest one that fits counts; * is any section."""

REASONS_OF_MODELS = {
    "async_mode": "calls are always asynchronous",
    "retry": "retries wait exponentially with jitter, or as long as the server says",
    "max_retries": "fixed: 8 retries",
    "retry_strategy": "retries wait exponentially with jitter, or as long as the server says",
    "max_retry_wait": "a retry waits at most 60 seconds, or as long as the server says",
    "rate_limit": "limits are GRAPHRAG_REQUESTS_PER_MINUTE and GRAPHRAG_TOKENS_PER_MINUTE",
    "model_supports_json": "learned from the server's answers",
    "rate_limit_strategy": "limits are GRAPHRAG_REQUESTS_PER_MINUTE and GRAPHRAG_TOKENS_PER_MINUTE",
    "metrics": "calls, tokens, seconds and dollars are rows of llm_calls",
    "encoding_model": "GRAPHRAG_TOKENIZER counts the tokens of all models",
    "audience": "set the variables of litellm for Azure, such as AZURE_AD_TOKEN",
    "proxy": "set HTTPS_PROXY in the environment",
    "responses": "for tests only",
    "mock_responses": "for tests only",
}
PARAMETERS_OF_MODELS = (
    *("max_tokens", "max_completion_tokens", "temperature", "top_p", "frequency_penalty", "presence_penalty"),
    "reasoning_effort",
)
TYPES = {
    **{"openai_chat": "openai", "openai_embedding": "openai"},
    **{"azure_openai_chat": "azure", "azure_openai_embedding": "azure"},
}
USES = {"chat": "extract_graph", "query": "local_search"}
"""Which section's model is used for what."""
SAME_USE = {
    **dict.fromkeys(("extract_claims", "summarize_descriptions", "community_reports"), "chat"),
    "global_search": "query",
    "drift_search": "query",
    "basic_search": "query",
}
