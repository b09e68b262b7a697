"""Claims: which are valid, and their place in the text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_assets.contracts.records import ClaimRecord
from graphrag_assets.llm.tasks.claims import ExtractedClaim, SourceText, claim_records

TEXT = (
    "The Agamemnon and the Niagara laid the first cable in August 1858.\n"
    "It failed after three weeks,  as “Mr. Whitehouse” had raised the voltage. The board dismissed him on 17 August. "
    "The Great Eastern, said to be unlucky, was chartered in 1864 for £50,000."
)


def claim(**more: object) -> dict[str, object]:
    return {"subject": "Agamemnon", "description": "A claim.", "source_text": "laid the first cable"} | more


def records(*claims: dict[str, object], text: str = TEXT):
    return claim_records(map(ExtractedClaim.model_validate, claims), text)[0]


def test_claim_with_all_fields():
    found = records(
        claim(
            object="cable of 1858",
            type="laying",
            status="true",
            start_date="August 1858",
            end_date="1858-08",
            description="The Agamemnon laid the first cable.",
        )
    )
    assert found == [
        ClaimRecord(
            subject="Agamemnon",
            object="cable of 1858",
            type="LAYING",
            description="The Agamemnon laid the first cable.",
            source_text="laid the first cable",
            status="TRUE",
            start_date="1858-08",
            end_date="1858-08",
        )
    ]


@pytest.mark.parametrize(
    ("said", "status"),
    [
        (True, "TRUE"),
        (False, "FALSE"),
        ("alleged", "SUSPECTED"),
        (None, "SUSPECTED"),
    ],
)
def test_a_status_is_true_false_or_suspected(said: object, status: str):
    assert records(claim(status=said))[0].status == status


@pytest.mark.parametrize(
    "bad",
    [
        claim(subject=""),
        claim(description="", source_text=None),
        claim(source_text="Penguins live on the southern ice."),
        claim(source_text="…", description="…"),
    ],
)
def test_a_bad_claim_is_dropped_and_the_good_one_stays(bad: dict[str, object]):
    found = records(bad, claim())
    assert len(found) == 1


@pytest.mark.parametrize(
    ("quotation", "found"),
    [
        ("laid the first cable", "laid the first cable"),
        (
            'It failed after three weeks, as "mr whitehouse" had',
            "It failed after three weeks,  as “Mr. Whitehouse” had",
        ),
        ("1858. It failed", "1858.\nIt failed"),
        ("The Great Eastern … was chartered in 1864", "The Great Eastern, said to be unlucky, was chartered in 1864"),
        ("THE BOARD [...] on 17 August", "The board dismissed him on 17 August"),
        # Reworded: the sentence that has most of its words.
        ("the board dismissed Whitehouse on 17 August", "The board dismissed him on 17 August."),
        ("The board on … laid the first", None),  # parts in another order are no quotation
        ("", ""),
    ],
)
def test_a_quotation_is_found_in_the_texts_own_wording(quotation: str, found: str | None):
    assert SourceText(TEXT).find(quotation) == found


def test_a_quotation_is_found_in_text_without_spaces():
    text = "鲁滨孙于一六五一年九月一日，在赫尔上船。那时他十九岁。"
    assert SourceText(text).find("九月一日在赫尔上船") == "九月一日，在赫尔上船"


@given(st.text(max_size=60), st.text(max_size=20))
def test_quotation_is_always_a_literal_part_of_the_text(text: str, quotation: str):
    found = SourceText(text).find(quotation)
    assert found is None or found in text
