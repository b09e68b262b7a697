"""Damaged files: changes at random of what a file has."""

import random

PIECES = (
    b"",
    b"\0" * 100,
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    "\u202e\u200b\ufeff\u0301".encode() * 50,
    b"\xed\xa0\x80",  # a lone surrogate
    b'"' * 999,
    b"[" * 50_000,
    b'{"text": ' * 5_000,
    b"<div>" * 20_000,
    b"a" * 300_000,
    b"\r" * 999,
    b"1e999, NaN, -0, 99999999999999999999999999",
    b"<|endoftext|> {{ 7 * 7 }} '; DROP TABLE documents; --",
    b"../../../etc/passwd\n=cmd|' /C calc'!A0\n[bold]",
    "𝕮𝖆𝖇𝖑𝖊 ﷽ 🏴‍☠️".encode() * 200,
)


def mutated(data: bytes, chance: random.Random) -> bytes:
    """`data` after one to three changes: cut, flipped, doubled, or with something strange in it."""
    for _ in range(chance.randint(1, 3)):
        place = chance.randrange(len(data) + 1)
        match chance.randrange(5):
            case 0:
                data = data[:place]
            case 1:
                flipped = bytearray(data)
                for _ in range(min(len(data), 20)):
                    flipped[chance.randrange(len(data))] = chance.randrange(256)
                data = bytes(flipped)
            case 2:
                data = data[:place] + data[:place][-5_000:] + data[place:]
            case _:
                data = data[:place] + chance.choice(PIECES) + data[place:]
    return data
