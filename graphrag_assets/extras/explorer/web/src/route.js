// What is selected is in the address, behind the #: `#entity=5`. So links, Back and Forward work, also in a file.

export function readRoute(hash) {
  const given = new URLSearchParams(hash.replace(/^#/, ""));
  for (const kind of ["entity", "relationship", "community", "claim", "candidate", "document", "unit"]) {
    const number = given.get(kind);
    if (number !== null && /^\d+$/.test(number)) {
      return { kind, number: Number(number), words: given.get("words"), for: given.get("for"), open: given.has("open") };
    }
  }
  return { kind: "about" };
}
