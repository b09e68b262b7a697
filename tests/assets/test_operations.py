"""The jobs for people, each from its beginning to its end."""

import pytest

TEXT = "Cyrus Field met William Thomson in Valentia. The Great Eastern carried the cable to Newfoundland."


DOCUMENTS = {"a/text.txt": TEXT, "b/text.txt": "Samuel Canning sailed with Daniel Gooch to Valentia."}


@pytest.fixture
def cables(start_with):
    return start_with(DOCUMENTS)


def titles(project) -> set[str]:
    return {row[0] for row in project.sql("SELECT title FROM entities")}


@pytest.mark.extended
def test_a_batch_that_fails_fails_the_job_after_the_others_are_published(cables, monkeypatch):
    import graphrag_assets.assets.index_batch as batch_index

    whole = batch_index.read_corpus

    def poisoned(batch, *rest):
        if batch == "a":
            raise RuntimeError("poison")
        return whole(batch, *rest)

    monkeypatch.setattr(batch_index, "read_corpus", poisoned)
    cables.write("a/text.txt", TEXT + " Daniel Gooch was aboard.")
    cables.write("b/text.txt", "Robert Halpin sailed with Daniel Gooch to Valentia.")
    result = cables.run("update_index", succeed=False)
    (failure,) = [event.step_failure_data.error for event in result.all_events if event.is_step_failure]
    assert "Batches failed: a: RuntimeError: poison. The other batches are indexed." in failure.message
    assert "Robert Halpin" in titles(cables)


@pytest.mark.extended
def test_a_refresh_that_fails_is_not_made_again_by_itself(cables, monkeypatch):
    """An endless loop, in which a model would be asked and paid each time."""
    from graphrag_assets.assets import knowledge_graph

    attempts = []

    def fails(*of_the_index, **more):
        attempts.append(1)
        if len(attempts) > 2:
            raise KeyboardInterrupt
        raise RuntimeError("this stage fails")

    monkeypatch.setattr(knowledge_graph, "knowledge_graph", fails)
    cables.write("b/text.txt", "Robert Halpin sailed with Daniel Gooch to Valentia.")
    cables.run("update_index", succeed=False)
    assert len(attempts) == 1


def test_rollback_to_what_is_not_kept_says_what_is(cables):
    result = cables.run("rollback", succeed=False, ops={"roll_back_publication": {"config": {"publication": 7}}})
    (failure,) = [event.step_failure_data.error for event in result.all_events if event.is_step_failure]
    assert "There is no publication '7'. Kept are 1" in str(failure)
