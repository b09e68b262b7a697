"""Retries of model calls in tests: fewer, or sooner, than a user has them."""

import functools

import pytest

from graphrag_assets.llm.model_options import LimitOptions


def limit_calls(monkeypatch: pytest.MonkeyPatch, **limits: float) -> None:
    """Give the models of the settings these `LimitOptions`, such as max_retries or backoff_seconds."""
    monkeypatch.setattr("graphrag_assets.llm.backend.LimitOptions", functools.partial(LimitOptions, **limits))
