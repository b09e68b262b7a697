"""What a judge of two names is shown."""

from datetime import date

from graphrag_assets.extras.resolution.judge import pair_text


def test_sentences_are_by_whole_name_and_one_of_a_longer_name_is_none_of_the_shorter():
    texts = [
        {
            "text": "Sometimes it rained. Tim sang. Tim Cratchit was small. Tim sang. Tim Cratchit is Tim.",
            "date": None,
        },
        {"text": "Nobody came. Tim Cratchit ate.", "date": date(1843, 12, 19)},
    ]
    tim = {"title_key": "tim", "title": "Tim", "type": "PERSON", "description": "A boy " * 80, "texts": texts[:1]}
    cratchit = {"title_key": "tim cratchit", "title": "Tim Cratchit", "type": "", "description": None, "texts": texts}
    lines = pair_text(tim, cratchit).splitlines()
    assert lines[0].startswith("Tim (PERSON): A boy A boy")
    assert lines[0].endswith(" …")
    assert lines[1:] == [
        "- Tim sang.",
        "Tim Cratchit (): ",
        "- Tim Cratchit was small.",
        "- (1843-12-19) Tim Cratchit ate.",
        "Both names:",
        "- Tim Cratchit is Tim.",
    ]
