// The page's content: read, and joined into what the panels and the map ask for.

export async function readContent() {
  const packed = atob(document.getElementById("content").textContent);
  const bytes = Uint8Array.from(packed, (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

// An object of columns as a list of objects.
function rows(table) {
  const names = Object.keys(table);
  return table[names[0]].map((_, i) => Object.fromEntries(names.map((name) => [name, table[name][i]])));
}

const byNumber = (list) => new Map(list.map((row) => [row.number, row]));

function grouped(list, key) {
  const groups = new Map();
  for (const row of list) {
    const value = key(row);
    if (groups.has(value)) groups.get(value).push(row);
    else groups.set(value, [row]);
  }
  return groups;
}

export function buildModel(content) {
  const entities = rows(content.entities);
  const entity = byNumber(entities);
  const relationships = rows(content.relationships);
  const communities = rows(content.communities);
  const community = byNumber(communities);
  const reports = new Map(rows(content.reports).map((report) => [report.community, report]));
  const claims = rows(content.claims);
  const candidates = rows(content.candidates);
  const documents = rows(content.documents);
  const units = rows(content.text_units);
  const mentions = rows(content.mentions);
  const statements = rows(content.statements);

  for (const one of entities) one.communities = [];
  for (const { entity: number, level, community: at } of rows(content.memberships)) entity.get(number).communities[level] = at;
  const members = new Map(communities.map((one) => [one.number, []]));
  for (const one of entities) for (const at of new Set(one.communities)) members.get(at)?.push(one);

  const relationshipsOf = new Map(entities.map((one) => [one.number, []]));
  for (const one of relationships) {
    relationshipsOf.get(one.source).push(one);
    if (one.target !== one.source) relationshipsOf.get(one.target).push(one);
  }
  const levels = communities.reduce((most, one) => Math.max(most, one.level + 1), 0);
  const claimsOfSubject = grouped(claims, (claim) => claim.subject);
  const claimsOfObject = grouped(claims, (claim) => claim.object);
  const mentionsOf = grouped(mentions, (mention) => mention.entity);
  const mentionsIn = grouped(mentions, (mention) => mention.unit);
  const statedIn = grouped(statements, (statement) => statement.relationship);
  const unitsOf = grouped(units, (unit) => unit.document);
  const children = grouped(communities, (one) => one.parent);
  const none = [];

  return {
    content,
    levels,
    entities,
    entity,
    relationships,
    relationship: byNumber(relationships),
    relationshipsOf: (number) => relationshipsOf.get(number) ?? none,
    communities,
    community,
    roots: children.get(-1) ?? none,
    children: (number) => children.get(number) ?? none,
    members: (number) => members.get(number) ?? none,
    links: rows(content.links),
    report: reports,
    communityOfReport: new Map([...reports.values()].map((report) => [report.number, report.community])),
    claims,
    claim: byNumber(claims),
    claimsOf: (number) => [
      ...(claimsOfSubject.get(number) ?? none),
      ...(claimsOfObject.get(number) ?? none).filter((claim) => claim.subject !== number),
    ],
    candidates,
    candidate: byNumber(candidates),
    candidatesOf: (number) => candidates.filter((one) => one.name === number || one.other === number),
    documents,
    document: byNumber(documents),
    units,
    unit: byNumber(units),
    unitsOf: (number) => unitsOf.get(number) ?? none,
    mentionsOf: (number) => mentionsOf.get(number) ?? none,
    // The names of an entity in the texts, but for its title.
    otherNames: (one) => [...new Set((mentionsOf.get(one.number) ?? none).flatMap((mention) => mention.names ?? []))].filter((name) => name !== one.title),
    mentionsIn: (number) => mentionsIn.get(number) ?? none,
    statedIn: (number) => (statedIn.get(number) ?? none).map((statement) => statement.unit),
    title: (one) => reports.get(one.number)?.title || one.title || `Community ${one.number}`,
  };
}

// What the index has and the page has not, in words.
export function leftOut(content) {
  return Object.entries(content.rows)
    .filter(([, [shown, total]]) => shown < total)
    .map(([name, [shown, total]]) => ({ name: name === "text_units" ? "texts" : name, missing: total - shown, total }));
}
