from graphrag_assets.extras.evaluation.evaluators.recall import ranks, recall


def test_metrics_by_hand():
    found = ranks([9, 4, 7, 1, 2, 3, 5, 6, 8, 0], [{7}, {0, 3}, {11}])
    assert found == [3, 6, None]
    assert recall(found) == {"recall@2": 0, "recall@5": 1 / 3, "recall@10": 2 / 3, "all@5": 0, "mrr": 1 / 3}
    assert recall([1, 5]) == {"recall@2": 0.5, "recall@5": 1, "recall@10": 1, "all@5": 1, "mrr": 1}
    assert recall([None]) == {"recall@2": 0, "recall@5": 0, "recall@10": 0, "all@5": 0, "mrr": 0}
