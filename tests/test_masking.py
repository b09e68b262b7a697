"""What is masked in everything that leaves the process, and what is not."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_assets.errors import GraphRAGError, InputError, masked_errors
from graphrag_assets.runtime.outgoing import ReplyMasker, mask, mask_reply, without_credentials

KEY = "planted/Key+with=odd chars"


@pytest.mark.parametrize("name", ["OPENAI_API_KEY", "AWS_SESSION_TOKEN", "WATSONX_APIKEY", "ALERT_URL", "PGPASSWORD"])
@pytest.mark.parametrize("echoed", [KEY, "planted%2FKey%2Bwith%3Dodd%20chars", "planted%2FKey%2Bwith%3Dodd+chars"])
def test_a_secret_of_a_variable_is_masked_in_every_form(monkeypatch, name, echoed):
    monkeypatch.setenv(name, KEY)
    assert mask(f"Incorrect key <{echoed}>.") == "Incorrect key <…>."


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://me:p@ss@host:8000/v1", "https://host:8000/v1"),
        ("postgresql+psycopg://me:pa/ss@db:5432/ledger", "postgresql+psycopg://db:5432/ledger"),
        ("postgresql://me:a/b@c@db/ledger", "postgresql://db/ledger"),
        ("s3://AKIAKEY:pa/s+s@bucket/folder", "s3://bucket/folder"),
        ("https://token@host/v1", "https://host/v1"),
        ("https://host/v1?api-key=plantedquery&x=1", "https://host/v1"),
        ("https://host:8000/v1", "https://host:8000/v1"),
        ("s3://bucket/a@b.txt", "s3://bucket/a@b.txt"),
    ],
    ids=lambda _: "",  # pytest puts the ids into the environment
)
def test_credentials_of_a_url_are_left_out_wherever_they_end(url, shown):
    assert without_credentials(url) == shown
    assert mask(f"Cannot open '{url}': refused").startswith(f"Cannot open '{shown}")


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://host/issues?id=5&page=2#end", "https://host/issues?id=5&page=2#end"),
        ("https://host/v1?api-version=2024-10-21&q=a+b%20c", "https://host/v1?api-version=2024-10-21&q=a+b%20c"),
        ("https://host/v1?api-key=planted,a;b&x=1", "https://host/v1?api-key=…&x=1"),
        ("https://host/v1?x=1&access_token=planted#y=2", "https://host/v1?x=1&access_token=…#y=2"),
        ("https://host/page#id_token=planted", "https://host/page#id_token=…"),
        ("https://me:planted@host/v1?x=1", "https://host/v1?x=1"),
        ("https://host/c/b?sv=2024&sp=r&sig=planted%3D", "https://host/c/b?sv=2024&sp=r&sig=…"),
        (
            "https://s3/b?X-Amz-Date=2026&X-Amz-Credential=planted%2F2026&X-Amz-Signature=planted&X-Amz-Expires=60",
            "https://s3/b?X-Amz-Date=2026&X-Amz-Credential=…&X-Amz-Signature=…&X-Amz-Expires=60",
        ),
        ("https://host/hook?code=planted", "https://host/hook?code=…"),
        ("https://host/hook?planted0123456789", "https://host/hook?…"),
        ("https://host/service?wsdl", "https://host/service?wsdl"),
    ],
    ids=lambda _: "",
)
def test_a_url_keeps_its_query_but_for_secrets(url, shown):
    assert mask(f"Cannot open '{url}': refused") == f"Cannot open '{shown}': refused"
    assert mask(f"see {url}\nnext") == f"see {shown}\nnext"
    assert mask(mask(url)) == mask(url)


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("Incorrect key sk-proj-abcdef123456, Bearer abc.def", "Incorrect key …, …"),
        (f"Authorization: Basic {base64.b64encode(b'me:password').decode()}", "Authorization: …"),
        ("The batch key-documents and api_keys.md are new.", "The batch key-documents and api_keys.md are new."),
    ],
)
def test_what_looks_like_a_key_is_masked(text, masked):
    assert mask(text) == masked == mask(masked)


def test_placeholders_paths_and_settings_are_not_masked(monkeypatch, tmp_path):
    monkeypatch.setenv("OPENAI_API_KEY", "ollama")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path))
    monkeypatch.setenv("GRAPHRAG_TOKENS_PER_MINUTE", "100000000")
    text = f"ollama/llama3 with {tmp_path} and 100000000 tokens"
    assert mask(text) == text


def test_errors_of_libraries_and_their_causes_show_no_secret(monkeypatch):
    monkeypatch.setenv("COHERE_API_KEY", "plantedcoherekey")
    with pytest.raises(GraphRAGError) as replaced, masked_errors():
        raise OSError(5, "refused plantedcoherekey")
    assert str(replaced.value) == "OSError: [Errno 5] refused …"
    with pytest.raises(InputError) as kept, masked_errors():
        raise InputError("The folder cannot be read.") from OSError("plantedcoherekey")
    assert kept.value.__cause__ is None
    assert kept.value.__suppress_context__
    with pytest.raises(KeyError), masked_errors():
        raise KeyError("nothing secret")


SHORT, LONG = "pa55word", "planted/secret+of-a-key"


@given(
    st.lists(st.sampled_from([SHORT, LONG, f"{SHORT}{LONG}", "pa55", "planted/se", "cret", "word", " ", "s", "é"])),
    st.data(),
)
def test_a_reply_is_masked_alike_whole_and_in_any_pieces(parts, data):
    text, masker, came, at = "".join(parts), None, "", 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", LONG)
        patch.setenv("PGPASSWORD", SHORT)
        masker, whole = ReplyMasker(), mask_reply(text)
    while at < len(text):
        n = data.draw(st.integers(1, 12))
        came += masker.feed(text[at : at + n])
        assert LONG not in came
        at += n
    assert came + masker.feed("", last=True) == whole
    assert LONG not in whole
    assert (SHORT in whole.split()) is False


@pytest.mark.parametrize("echoed", [LONG, "planted\\/secret+of-a-key", "planted%2Fsecret%2Bof-a-key"])
def test_a_secret_in_the_json_of_a_reply_is_masked(monkeypatch, echoed):
    monkeypatch.setenv("OPENAI_API_KEY", LONG)
    assert mask_reply(f'{{"title": "{echoed}"}}') == '{"title": "…"}'
