from graphrag_assets.pipeline.embedding_texts import texts_of


def test_entities_are_embedded_by_their_first_sentences_and_reports_by_their_entities_too():
    long = "Ada is a mathematician. She wrote notes on an engine. " + "It was never built in her time. " * 9
    beginning = "Ada:Ada is a mathematician. She wrote notes on an engine. It was never built in her time."
    assert list(texts_of("entity", "Ada", long, None)) == ["Ada", beginning]
    assert texts_of("text_unit", "", "x", None) == ["x"]
    assert texts_of("text_unit", "Title", "x", None) == ["Title\nx"]
    of_report = [texts_of("community_report", "Report", "In short.", ["a", "b", "c"][:n]) for n in range(4)]
    assert of_report == [["Report\n\nIn short."] * times for times in (1, 1, 0, 3)]
