// The panel: everything there is to say about what is selected.

import { cited } from "./citations.js";
import { count, h, longList, marked, plural, prose, section } from "./dom.js";
import { candidateFacts, candidateRow } from "./lists.js";
import { leftOut } from "./model.js";

const figure = (number) => (number === null || number === undefined ? "–" : Number(number.toFixed(2)).toLocaleString("en"));

const heading = (kind, title, ...facts) =>
  h("header", null, h("p", { class: "kind" }, kind), h("h2", { tabindex: "-1" }, title), h("p", { class: "facts" }, facts.filter(Boolean).map((fact) => h("span", null, fact))));

const entityLink = (model, number, name) => (model.entity.has(number) ? h("a", { href: `#entity=${number}` }, model.entity.get(number).title) : (name ?? "not on this page"));

// Names under which a text unit has the entity.
const namesIn = (entity, mention) => [...(mention?.names ?? []), entity.title];

export function entityDetails(model, entity) {
  const mentions = model.mentionsOf(entity.number);
  const others = model.otherNames(entity);
  const relationships = model.relationshipsOf(entity.number);
  const claims = model.claimsOf(entity.number);
  const candidates = model.candidatesOf(entity.number);
  const chain = [...new Set(entity.communities)].map((number) => model.community.get(number)).filter(Boolean);
  return [
    heading(entity.type || "Entity", entity.title, plural(entity.degree ?? 0, "neighbor"), `in ${plural(entity.frequency ?? mentions.length, "text unit")}`, `entity ${entity.number}`),
    others.length ? h("p", { class: "aliases" }, "Also: ", others.join(", ")) : null,
    entity.description ? h("p", { class: "description" }, prose(entity.description)) : null,
    section(
      "Relationships",
      relationships.length,
      relationships.length < (entity.degree ?? 0) ? h("p", { class: "nothing" }, `${plural((entity.degree ?? 0) - relationships.length, "relationship")} of it are not on this page.`) : null,
      longList(relationships, (one) => h("li", null, relationshipCard(model, one, entity))),
    ),
    candidates.length ? section("May be one thing with", candidates.length, longList(candidates, candidateRow, { first: 4 })) : null,
    claims.length ? section("Claims", claims.length, longList(claims, (claim) => h("li", null, claimCard(model, claim)), { first: 6 })) : null,
    section("In the text", mentions.length, longList(mentions, (mention) => h("li", null, passage(model, mention.unit, namesIn(entity, mention), `&for=entity:${entity.number}`)), { first: 4, more: 20 })),
    chain.length ? section("Communities", chain.length, h("ul", { class: "list" }, chain.map((one) => h("li", null, communityCard(model, one))))) : null,
  ];
}

function relationshipCard(model, one, from) {
  const other = one.source === from.number ? one.target : one.source;
  return h(
    "div",
    { class: "card" },
    h(
      "div",
      { class: "line" },
      entityLink(model, other),
      one.type ? h("span", { class: "badge" }, one.source === from.number ? `${one.type} →` : `← ${one.type}`) : null,
      h("a", { class: "weight", href: `#relationship=${one.number}`, title: "The relationship and the texts that state it" }, `weight ${figure(one.weight)}`),
    ),
    one.description ? h("p", { class: "clamped" }, prose(one.description)) : null,
  );
}

export function relationshipDetails(model, one) {
  const ends = [model.entity.get(one.source), model.entity.get(one.target)];
  const units = model.statedIn(one.number);
  const mention = (entity, unit) => model.mentionsOf(entity.number).find((given) => given.unit === unit);
  return [
    heading("Relationship", [entityLink(model, one.source), " – ", entityLink(model, one.target)], one.type, `weight ${figure(one.weight)}`, `relationship ${one.number}`),
    one.description ? h("p", { class: "description" }, prose(one.description)) : null,
    section("In the text", units.length, longList(units, (unit) => h("li", null, passage(model, unit, ends.flatMap((end) => namesIn(end, mention(end, unit))), `&for=relationship:${one.number}`)), { first: 4, more: 20 })),
  ];
}

function claimFacts(claim) {
  const dates = [...new Set([claim.start_date, claim.end_date].filter(Boolean))].join(" to ");
  return [claim.type, claim.status, dates].filter(Boolean);
}

function claimCard(model, claim) {
  return h("div", { class: "card" }, h("a", { class: "plain", href: `#claim=${claim.number}` }, claim.description), h("p", { class: "note" }, claimFacts(claim).join(" · ")));
}

export function claimDetails(model, claim) {
  const object = claim.object_name && claim.object_name !== "NONE" ? claim.object_name : null;
  return [
    heading("Claim", claim.type || "Claim", ...claimFacts(claim).slice(claim.type ? 1 : 0), `claim ${claim.number}`),
    h("p", { class: "description" }, prose(claim.description)),
    h(
      "dl",
      null,
      h("dt", null, "Subject"),
      h("dd", null, claim.subject === null ? `${claim.subject_name} (no entity of the index)` : entityLink(model, claim.subject, claim.subject_name)),
      object ? [h("dt", null, "Object"), h("dd", null, entityLink(model, claim.object, object))] : null,
    ),
    section("In the text", null, model.unit.has(claim.unit) ? passage(model, claim.unit, [claim.source_text], `&for=claim:${claim.number}`) : h("blockquote", null, claim.source_text)),
  ];
}

// Two names that may be one thing, each with what the index says of it, and the commands that decide.
export function candidateDetails(model, one) {
  const ends = [
    [one.name, one.name_title],
    [one.other, one.other_title],
  ];
  const side = ([number, title]) => {
    const entity = model.entity.get(number);
    const mentions = model.mentionsOf(number);
    return section(
      title,
      null,
      h("p", { class: "aliases" }, entity ? [entityLink(model, number), ` · ${[entity.type, plural(entity.degree ?? 0, "neighbor")].filter(Boolean).join(" · ")}`] : "This name is no entity of this page: it stands for another one, or is left out."),
      entity?.description ? h("p", { class: "description" }, prose(entity.description)) : null,
      longList(mentions, (mention) => h("li", null, passage(model, mention.unit, namesIn(entity, mention), `&for=entity:${number}`)), { first: 2, more: 20 }),
    );
  };
  const quoted = ends.map(([, title]) => `'${title.replaceAll("'", "'\\''")}'`).join(" ");
  return [
    heading("Candidate", `${one.name_title} – ${one.other_title}`, ...candidateFacts(one), `in ${plural(one.documents, "common document")}`, plural(one.neighbors, "common neighbor")),
    one.decision ? null : h("p", { class: "nothing" }, "Are they one thing? The decision holds from the next index on, and can be undone:"),
    h("p", null, h("code", null, `graphrag-assets resolve ${one.decision ? "undo" : "accept"} ${quoted}`)),
    one.decision ? null : h("p", null, h("code", null, `graphrag-assets resolve reject ${quoted}`)),
    ends.map(side),
  ];
}

// A text unit with what is looked for marked, and the way to its place in the document.
function passage(model, number, names, purpose) {
  const unit = model.unit.get(number);
  if (!unit) return null;
  const document = model.document.get(unit.document);
  const text = unit.text === null ? null : marked(unit.text, names);
  return h(
    "article",
    { class: "passage" },
    h("p", { class: "source" }, h("a", { href: `#unit=${unit.number}${purpose}`, title: "In its document" }, document?.title ?? "Document"), h("span", null, `${document?.source ?? ""}${place(unit)}`)),
    text === null ? missing() : excerpt(text.nodes),
    text && !text.found ? h("p", { class: "nothing" }, "The text has it in other words.") : null,
  );
}

const place = (unit) => `${unit.place ? `, ${unit.place}` : ""}${unit.start === null ? "" : `, characters ${count(unit.start)}–${count(unit.end)}`}`;

const missing = () => h("p", { class: "nothing" }, "This text is not on the page; it is in graphrag.duckdb, table text_units.");

// The text around the first mark; all of it when asked.
function excerpt(nodes) {
  const full = h("p", { class: "text" }, nodes);
  const before = typeof nodes[0] === "string" ? nodes[0] : "";
  const length = full.textContent.length;
  if (length < 700) return full;
  const short = h("p", { class: "text" });
  let room = 520;
  if (before.length > 180) short.append("… ");
  for (const [i, node] of nodes.entries()) {
    const text = i === 0 ? before.slice(before.length > 180 ? before.lastIndexOf(" ", before.length - 160) + 1 : 0) : node.textContent ?? node;
    if (room <= 0) break;
    short.append(typeof node === "string" ? text.slice(0, room) : node.cloneNode(true));
    room -= text.length;
  }
  short.append(" …");
  const button = h("button", { type: "button", class: "more" }, "Whole text unit");
  const box = h("div", null, short, button);
  button.addEventListener("click", () => box.replaceChildren(full));
  return box;
}

const communityCard = (model, one) =>
  h("div", { class: "card" }, h("div", { class: "line" }, h("a", { href: `#community=${one.number}` }, model.title(one)), h("span", { class: "badge" }, `level ${one.level}`), h("span", { class: "weight" }, plural(one.size, "entity", "entities"))));

export function communityDetails(model, one, openable) {
  const report = model.report.get(one.number);
  const members = model.members(one.number);
  const parent = model.community.get(one.parent);
  const children = model.children(one.number);
  return [
    heading(
      `Community, level ${one.level}`,
      model.title(one),
      plural(one.size, "entity", "entities"),
      report?.rank !== null && report?.rank !== undefined ? h("span", { title: report.rating_explanation ?? "" }, `rank ${figure(report.rank)} of 10`) : null,
      `community ${one.number}`,
    ),
    openable ? h("p", null, h("a", { class: "button", href: `#community=${one.number}&open` }, "Open on the map")) : null,
    parent ? h("p", { class: "aliases" }, "Part of ", h("a", { href: `#community=${parent.number}` }, model.title(parent))) : null,
    report
      ? [
          report.summary ? h("p", { class: "description" }, cited(report.summary, model)) : null,
          report.findings?.length
            ? section("Findings", report.findings.length, h("ol", { class: "findings" }, report.findings.map((finding) => h("li", null, h("h4", null, cited(finding.summary, model)), h("p", null, cited(finding.explanation, model))))))
            : null,
        ]
      : h("p", { class: "nothing" }, "This community has no report."),
    children.length ? section("Parts", children.length, longList(children, (child) => h("li", null, communityCard(model, child)))) : null,
    section(
      "Entities",
      one.size,
      members.length < one.size ? h("p", { class: "nothing" }, `${count(one.size - members.length)} of them are not on this page.`) : null,
      longList(members, (member) =>
        h("li", null, h("a", { class: "row", href: `#entity=${member.number}` }, h("span", { class: "name" }, member.title), h("span", { class: "note" }, member.type), h("span", { class: "figure" }, count(member.degree ?? 0)))),
      ),
    ),
  ];
}

// A document with its text units in order; `at` is the one to go to, with `names` marked in it.
export function documentDetails(model, document, at = null, names = [], back = null) {
  const units = model.unitsOf(document.number);
  const start = at ? Math.max(0, units.indexOf(at) - 2) : 0;
  const block = (unit) => {
    const here = unit === at;
    const entities = model.mentionsIn(unit.number).filter((mention) => model.entity.has(mention.entity));
    return h(
      "article",
      { class: here ? "unit here" : "unit", id: `unit-${unit.number}` },
      h("p", { class: "source" }, h("a", { href: `#unit=${unit.number}` }, `Text unit ${unit.number}`), h("span", null, place(unit).replace(", ", ""))),
      unit.text === null ? missing() : h("p", { class: "text" }, here ? marked(unit.text, names).nodes : unit.text),
      entities.length ? longList(entities, (mention) => h("li", null, h("a", { href: `#entity=${mention.entity}` }, model.entity.get(mention.entity).title)), { first: 8, name: "chips" }) : null,
    );
  };
  const earlier = h("button", { type: "button", class: "more", hidden: start === 0 }, `Show the ${plural(start, "text unit")} before`);
  const body = longList(units.slice(start), block, { first: 30, more: 100, tag: "div", name: "units" });
  earlier.addEventListener("click", () => {
    earlier.replaceWith(longList(units.slice(0, start), block, { first: start, tag: "div", name: "units" }));
  });
  return [heading("Document", document.title || document.source, document.source, document.batch ? `batch ${document.batch}` : null, plural(units.length, "text unit")), back, earlier, body];
}

export function aboutDetails(model) {
  const { publication, made_with: madeWith, rows, errors } = model.content;
  const missingRows = leftOut(model.content);
  const embedded = madeWith.extractor?.startsWith("embedded/");
  return [
    heading("Index", `Publication ${publication.number ?? "–"}`, publication.published_at ? `${publication.published_at} UTC` : null),
    missingRows.length
      ? h(
          "div",
          { class: "notice", id: "left-out" },
          h("p", null, h("strong", null, "The index is larger than this page."), " Left out, the least connected first:"),
          h("ul", null, missingRows.map(({ name, missing: n, total }) => h("li", null, `${count(n)} of ${count(total)} ${name}`))),
          h("p", null, "graphrag.duckdb has all of it."),
        )
      : null,
    h("dl", { class: "figures" }, ["documents", "text_units", "entities", "relationships", "communities", "claims"].map((name) => h("div", null, h("dt", null, name.replace("_", " ")), h("dd", null, count(rows[name][1]))))),
    errors ? h("p", { class: "notice" }, `${plural(errors, "file, row or text unit was", "files, rows or text units were")} skipped while indexing; the table index_errors has each with its cure.`) : null,
    section(
      "Made with",
      null,
      h("dl", null, Object.entries({ extractor: "Extraction", reporter: "Reports", embedding_model: "Embeddings" }).map(([name, label]) => (madeWith[name] ? [h("dt", null, label), h("dd", null, madeWith[name])] : null))),
      embedded ? h("p", { class: "nothing" }, "The embedded default: no language model wrote anything of this.") : null,
    ),
    section(
      "On this page",
      null,
      h(
        "ul",
        { class: "help" },
        h("li", null, h("kbd", null, "/"), " searches entities, communities, documents, claims and texts."),
        h("li", null, "On the map, a click selects; the wheel zooms; colors are communities of the chosen level."),
        h("li", null, "The address changes with what you select: copy it to point somebody to the same place."),
        h("li", null, "Everything is in this file. It asks for nothing from the network."),
      ),
    ),
  ];
}
