"use strict";
// The conversation is kept in this browser only. Texts of documents and models become text nodes, never markup.

const $ = (id) => document.getElementById(id);
const state = { turns: [], running: null, client: "", url: "", map: "", token: sessionStorage.getItem("graphrag-token") || "" };
const store = () => `graphrag-conversation of ${state.client}`;

function make(name, properties = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key in element && key !== "list") element[key] = value;
    else element.setAttribute(key, value);
  }
  element.append(...children);
  return element;
}

async function request(path, body, signal) {
  const headers = { Accept: "application/json" };
  if (state.token) headers.Authorization = `Bearer ${state.token}`;
  if (body) headers["Content-Type"] = "application/json";
  const options = { method: body ? "POST" : "GET", headers, body: body && JSON.stringify(body), signal };
  const response = await fetch(path, options);
  if (response.status === 401) {
    const said = state.token ? "This token is not valid." : "";
    leave();
    $("refused").textContent = said;
    if (!$("login").open) $("login").showModal();
    throw new Error("A token is needed.");
  }
  if (!response.ok) {
    const told = await response.json().catch(() => ({}));
    throw new Error((told.error && told.error.message) || `The server answers ${response.status}.`);
  }
  return response;
}

function useToken(token) {
  state.token = token;
  sessionStorage.setItem("graphrag-token", token);
}

// Nothing of whom the token was for stays on the screen.
function leave() {
  if (state.running) state.running.abort();
  useToken("");
  Object.assign(state, { turns: [], client: "", map: "" });
  $("token").value = $("question").value = "";
  $("map").hidden = true;
  $("state").textContent = $("status").textContent = "";
  $("log").replaceChildren();
  $("panel").replaceChildren();
}

async function enter() {
  try {
    const found = (await (await request("/v1/models")).json()).graphrag;
    Object.assign(state, { client: found.client, url: found.url, map: found.map });
    $("state").textContent = `Publication ${found.publication}`;
    $("map").hidden = !found.map;
    $("map").href = found.map || "";
    try { state.turns = JSON.parse(localStorage.getItem(store())) || []; } catch { state.turns = []; }
    $("log").replaceChildren();
    state.turns.forEach(show);
    if (state.turns.length) showSources(state.turns[state.turns.length - 1]);
    $("question").focus();
  } catch (error) {
    $("state").textContent = error.message;
  }
  $("leave").textContent = state.token ? "Log out" : "Log in";
  $("leave").hidden = Boolean(state.client) && !state.token;
}

// --- Markdown of answers: headings, lists, paragraphs, emphasis, footnotes ---

const INLINE = /\\([\\`*_[\]|~!:.(<&])|&(lt|amp);|\*\*(.+?)\*\*|(?<![\w*])\*(?!\s)(.+?)\*(?!\w)|`([^`]+)`|\[(\d{1,3})\]/g;

function inline(text, turn) {
  const parts = [];
  let end = 0;
  for (const found of text.matchAll(INLINE)) {
    parts.push(text.slice(end, found.index));
    end = found.index + found[0].length;
    const [, escaped, entity, bold, italic, code, number] = found;
    if (escaped) parts.push(escaped);
    else if (entity) parts.push(entity === "lt" ? "<" : "&");
    else if (bold) parts.push(make("strong", {}, ...inline(bold, turn)));
    else if (italic) parts.push(make("em", {}, ...inline(italic, turn)));
    else if (code) parts.push(make("code", {}, code.replace(/\\\[/g, "[")));
    else parts.push(footnote(Number(number), turn));
  }
  parts.push(text.slice(end));
  return parts.filter((part) => part !== "");
}

function footnote(number, turn) {
  const label = `Source ${number}`;
  const show = () => { showSources(turn, number); $("panel").focus(); };
  return make("button", { type: "button", className: "cite", "aria-label": label, onclick: show }, String(number));
}

function rendered(text, turn) {
  const blocks = [];
  let list = null;
  for (const line of text.split("\n")) {
    const heading = /^#{1,6}\s+(.*)/.exec(line);
    const item = /^\s*(?:[-*•]|(\d+)\.)\s+(.*)/.exec(line);
    if (item) {
      const name = item[1] ? "ol" : "ul";
      if (!list || list.localName !== name) blocks.push((list = make(name)));
      list.append(make("li", {}, ...inline(item[2], turn)));
      continue;
    }
    list = null;
    if (heading) blocks.push(make("h3", {}, ...inline(heading[1], turn)));
    else if (line.trim()) blocks.push(make("p", {}, ...inline(line, turn)));
  }
  return blocks;
}

// --- Sources ---

function showSources(turn, number = null) {
  const panel = $("panel");
  panel.replaceChildren();
  if (!turn.citations || !turn.citations.length) return;
  const list = make("ol", {});
  for (const citation of turn.citations) {
    const label = `[${citation.footnote}] ${citation.title}`;
    const item = make("li", {},
      make("button", { type: "button", onclick: () => showPassage(citation, item) }, label),
      make("div", { className: "quote" }, citation.quote || ""));
    if (citation.footnote === number) item.setAttribute("aria-current", "true");
    list.append(item);
  }
  panel.append(make("h2", {}, "Sources"), list);
  if (turn.entities && turn.entities.length && state.map) panel.append(make("h2", {}, "On the map"), entityLinks(turn.entities));
  const chosen = turn.citations.find((citation) => citation.footnote === number);
  const current = list.querySelector("[aria-current]");
  panel.scrollTop = 0;
  if (chosen && current) showPassage(chosen, current);
}

function showPassage(citation, item) {
  for (const other of item.parentElement.children) other.removeAttribute("aria-current");
  item.setAttribute("aria-current", "true");
  const old = $("passage");
  if (old) old.remove();
  const place = make("div", { id: "passage", "aria-live": "polite" });
  item.append(place);
  if (!citation.url) return place.replaceChildren("This row has no passage.");
  // Conversations of earlier versions have other addresses.
  if (!citation.url.startsWith(`${state.url}/source/`)) return place.replaceChildren("Ask again to read the passage.");
  const path = citation.url.slice(state.url.length);
  place.replaceChildren(
    make("iframe", { src: `${path}#marked`, title: `Passage ${citation.footnote}`, sandbox: "" }),
    make("p", {}, make("a", { href: citation.url, target: "_blank", rel: "noopener" }, "Open the passage in a tab")));
}

function entityLinks(entities) {
  const link = ({ number, title }) => make("a", { href: `${state.map}#entity=${number}`, target: "_blank", rel: "noopener" }, title);
  return make("ul", {}, ...entities.map((entity) => make("li", {}, link(entity))));
}

// --- The conversation ---

function show(turn) {
  const answer = make("div", { className: "answer" });
  $("log").append(make("div", { className: "asked" }, turn.question), answer);
  turn.element = answer;
  update(turn);
}

function update(turn) {
  const notes = [];
  if (turn.error) notes.push(make("p", { className: "error", role: "alert" }, turn.error));
  if (turn.note) notes.push(make("p", { className: "note" }, turn.note));
  turn.element.replaceChildren(...rendered(turn.text, turn), ...notes);
}

function filter() {
  const given = {};
  const batches = $("batches").value.split(",").map((part) => part.trim()).filter(Boolean);
  const documents = $("documents").value.split(";").map((part) => part.trim()).filter(Boolean);
  if (batches.length) given.batches = batches;
  if (documents.length) given.documents = documents;
  for (const name of ["since", "as_of"]) if ($(name).value.trim()) given[name] = $(name).value.trim();
  return given;
}

async function ask(question) {
  const answered = state.turns.filter((turn) => turn.text && !turn.error);
  const history = answered.slice(-10).flatMap((turn) => [
    { role: "user", content: turn.question }, { role: "assistant", content: turn.text }]);
  const turn = { question, text: "" };
  let complete = false;
  state.turns.push(turn);
  show(turn);
  running(new AbortController());
  const body = {
    model: `graphrag-${$("method").value}`,
    messages: [...history, { role: "user", content: question }],
    metadata: { filter: filter(), is_question: true },
    stream: true,
  };
  try {
    const response = await request("/v1/chat/completions", body, state.running.signal);
    for await (const data of events(response.body)) {
      if (data === "[DONE]") {
        complete = true;
        break;
      }
      const { error, graphrag, choices } = JSON.parse(data);
      if (error) turn.error = error.message;
      else if (graphrag) {
        Object.assign(turn, { text: graphrag.text, citations: graphrag.citations, entities: graphrag.entities });
        const how = `${graphrag.method} search, ${graphrag.seconds.toFixed(1)} s, ${graphrag.model}`;
        turn.note = [how, ...graphrag.errors].join(". ");
        showSources(turn);
      } else if (choices.length) turn.text += choices[0].delta.content || "";
      update(turn);
      $("log").scrollTop = $("log").scrollHeight;
    }
    if (!complete) throw new Error("The connection ended before the answer was complete.");
  } catch (error) {
    turn.error = error.name === "AbortError" ? "Stopped." : error.message;
    update(turn);
  }
  running(null);
  $("status").textContent = turn.error ? "" : "The answer is complete.";
  save();
}

async function* events(stream) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let held = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const parts = (held + value).split(/\r?\n\r?\n/);
    held = parts.pop();
    for (const part of parts) {
      const lines = part.split(/\r?\n/);
      const data = lines.filter((line) => line.startsWith("data: ")).map((line) => line.slice(6)).join("\n");
      if (data) yield data;
    }
  }
}

function running(controller) {
  state.running = controller;
  $("stop").hidden = !controller;
  $("send").disabled = Boolean(controller);
  if (controller) $("status").textContent = "Searching…";
}

function save() {
  if (!state.client) return;
  const kept = state.turns.slice(-50).map(({ element, ...turn }) => turn);
  localStorage.setItem(store(), JSON.stringify(kept));
}

$("form").addEventListener("submit", (event) => {
  event.preventDefault();
  const question = $("question").value.trim();
  if (!question || state.running) return;
  $("question").value = "";
  ask(question);
});
$("question").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    $("form").requestSubmit();
  }
});
document.addEventListener("keydown", (event) => { if (event.key === "Escape" && state.running) state.running.abort(); });
$("stop").addEventListener("click", () => state.running && state.running.abort());
$("clear").addEventListener("click", () => {
  localStorage.removeItem(store());
  const token = state.token;
  leave();
  useToken(token);
  enter();
});
$("leave").addEventListener("click", () => {
  if (state.client) localStorage.removeItem(store());
  leave();
  enter();
});
$("login").addEventListener("close", () => {
  const token = $("token").value.trim();
  if (!token) return;
  useToken(token);
  enter();
});
enter();
