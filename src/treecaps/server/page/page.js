"use strict";
// Whatever was pasted is shown as text and never as HTML: nothing here sets innerHTML.

const $ = name => document.getElementById(name);
const bytes = new TextEncoder();
const text = new TextDecoder("utf-8", { ignoreBOM: true });
const OPEN_NODES = 150, STRONGEST = 12, DEEPEST = 100, PAUSE = 400, ALIKE = 0.5;
let about = { index: null, limits: { max_bytes: Infinity } };
let running = new AbortController();
let filename = null;

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

async function ask(path, body, signal) {
  let answer;
  try {
    answer = await fetch(path, body && {
      method: "POST", signal, headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The server does not answer. Is it still running?");
  }
  const found = await answer.json();
  if (!answer.ok) throw new Error(found.error.message);
  return found;
}

function say(words, error = false) {
  $("status").textContent = words;
  $("status").classList.toggle("error", error);
}

// The program

function setCode(code, name) {
  $("code").value = code.replace(/^\uFEFF/, "");
  filename = name;
  $("language").value = "";
  guess();
}

async function open(file) {
  if (file.size > about.limits.max_bytes)
    return say(`${file.name} is larger than the ${about.limits.max_bytes / 1e6} MB that this server takes`, true);
  setCode(await file.text(), file.name);
  $("sample").value = "";
  tell();
}

async function guess() {
  const [first] = $("language").options, code = $("code").value;
  first.textContent = "guess";
  if (!code.trim()) return;
  try {
    const { language } = await ask("v1/language", { code, ...(filename && { filename }) });
    if (code === $("code").value) first.textContent = `guessed: ${language}`;
  } catch (error) { /* what is wrong with the program is said when its answer is asked for */ }
}

function program() {
  const chosen = $("language").value;
  return {
    code: $("code").value,
    ...(chosen && { language: chosen }),
    ...(filename && { filename }),
  };
}

// The answer

async function tell() {
  running.abort();
  const run = running = new AbortController();
  const asked = program();
  for (const part of ["answer", "why", "alike"]) $(part).hidden = true;
  if (!asked.code.trim()) {
    say("There is no code yet: paste some, drop a file or choose a sample.", true);
    return $("code").focus();
  }
  $("tell").disabled = true;
  say("Looking at the tree…");
  try {
    const said = await ask("v1/classify", { ...asked, top: 5 }, run.signal);
    showAnswer(said);
    if (said.guess === null) return say("");
    say("Finding out why…");
    const searching = about.index && ask("v1/search", { ...asked, with_code: true }, run.signal);
    const explaining = ask("v1/explain", asked, run.signal);
    const [alike, why] = await Promise.allSettled([searching, explaining]);
    if (run.signal.aborted) return;
    if (alike.value) showMatches(alike.value.matches);
    if (why.value) showWhy(asked.code, why.value);
    const failed = [why, alike].find(one => one.status === "rejected");
    say(failed ? failed.reason.message : "", Boolean(failed));
  } catch (error) {
    if (error.name !== "AbortError") say(error.message, true);
  } finally {
    if (run === running) $("tell").disabled = false;
  }
}

// What is less probable is not worth a word, unless it is the answer; inference/classify.py has it too.
const LIKELY = 0.05;
const percent = share => `${Math.round(100 * share)} %`;

function bar(share) {
  const track = make("span", { class: "track" }, make("i"));
  track.firstChild.style.width = `${Math.max(0, Math.min(100, 100 * share))}%`;
  return track;
}

function showAnswer(found) {
  const guess = found.title ? `${found.guess} (${found.title})` : found.guess;
  const likely = found.top.filter(one => one.probability >= LIKELY);
  const said = found.reason || (likely.length && `perhaps ${guess}`);
  $("verdict").textContent = found.known ? guess : ["unknown", said].filter(Boolean).join(", ");
  const parts = (found.parts || []).map(part => `${part.label} in line ${part.line}`);
  $("parts").textContent = parts.length ? `also ${parts.join(", ")}` : "";
  $("parts").hidden = !parts.length;
  $("bars").replaceChildren(...likely.map(one => make("li", {},
    make("span", { class: "name" }, one.label),
    make("span", { class: "share" }, percent(one.probability)), bar(one.probability))));
  $("answer").hidden = false;
  $("verdict").focus({ preventScroll: true });
}

function ground(element, value, most) {
  const strength = Math.min(Math.abs(value) / most, 1) ** 0.5;
  if (strength >= 0.1) element.style.backgroundColor =
    `rgb(var(--${value > 0 ? "for" : "against"}) / ${(0.75 * strength).toFixed(2)})`;
}

function largest(values) {
  return values.reduce((most, value) => Math.max(most, Math.abs(value)), 0) || 1;
}

function showWhy(code, found) {
  $("explained").textContent = found.explained;
  showSource(bytes.encode(code), found);
  showTree(bytes.encode(code), found);
  $("why").hidden = false;
}

function showSource(source, found) {
  const most = largest(found.nodes.map(one => one.token));
  const all = found.lines.reduce((sum, value) => sum + Math.abs(value), 0) || 1;
  const lines = [];
  const begin = () => {
    const share = 100 * (found.lines[lines.length] || 0) / all;
    const shown = Math.abs(share) >= 0.1 ? `${share.toFixed(1)} %` : "";
    lines.push(make("div", {}, make("span", { class: "gutter" },
      `${String(lines.length + 1).padStart(4)} ${shown.padStart(7)}  `)));
  };
  const add = (piece, node) => piece.split("\n").forEach((part, place) => {
    if (place) begin();
    if (!part) return;
    if (!node) return lines.at(-1).append(part);
    const token = make("span", { "data-n": node.node, title: `${node.kind}: ${node.token.toFixed(4)}` }, part);
    ground(token, node.token, most);
    lines.at(-1).append(token);
  });
  begin();
  let done = 0;
  for (const node of found.nodes) {
    if (!node.token || node.start < done || node.end <= node.start) continue;
    add(text.decode(source.subarray(done, node.start)));
    add(text.decode(source.subarray(node.start, node.end)), node);
    done = node.end;
  }
  add(text.decode(source.subarray(done)));
  $("source").replaceChildren(...lines);
}

function showTree(source, found) {
  const most = largest(found.nodes.map(one => one.contribution));
  const byNumber = new Map(found.nodes.map(one => [one.node, one]));
  const strongest = [...found.nodes].sort((a, b) => Math.abs(b.contribution) - Math.abs(a.contribution));
  const open = new Set(found.nodes.length <= OPEN_NODES ? byNumber.keys() : [0]);
  for (const one of strongest.slice(0, STRONGEST))
    for (let above = byNumber.get(one.parent); above; above = byNumber.get(above.parent))
      open.add(above.node);
  const inner = new Set(found.nodes.map(one => one.parent));
  const places = new Map([[-1, { list: $("tree"), depth: 0 }]]);
  $("tree").replaceChildren();
  for (const one of found.nodes) {
    const { list, depth } = places.get(one.parent);
    const head = make("span", { "data-n": one.node, title: one.contribution.toFixed(4) }, one.kind);
    ground(head, one.contribution, most);
    const words = text.decode(source.subarray(one.start, Math.min(one.end, one.start + 40)));
    const quoted = one.kind.startsWith('"') ? "" : ` ${words}`;
    if (inner.has(one.node) && depth < DEEPEST) {
      const below = make("ul");
      const fold = make("details", {}, make("summary", {}, head), below);
      fold.open = open.has(one.node);
      list.append(make("li", {}, fold));
      places.set(one.node, { list: below, depth: depth + 1 });
    } else {
      list.append(make("li", { class: "leaf" }, head, make("span", { class: "quiet" }, quoted)));
      places.set(one.node, { list, depth });
    }
  }
  const hidden = found.nodes_in_all - found.nodes.length;
  if (hidden) $("tree").append(make("li", { class: "quiet" }, `and ${hidden} nodes that add less`));
}

function showMatches(found) {
  // A model that was not trained for similarity knows no probability.
  const known = found.length > 0 && found[0].probability != null;
  const figure = one => known ? percent(one.probability) : one.similarity.toFixed(3);
  $("matches").replaceChildren(...found.map(one => {
    const place = one.line ? `${one.path}:${one.line}` : one.path;
    const name = make("span", { class: "name" }, one.function ? `${one.function} ` : "",
      make("span", { class: "quiet" }, `${place} (${one.language})`));
    const code = make("pre", {}, one.code ?? "The file has changed since it was indexed.");
    return make("li", {}, make("details", {},
      make("summary", {}, make("span", {}, figure(one)), bar(known ? one.probability : one.similarity), name), code));
  }));
  if (known && found[0].probability < ALIKE)
    $("matches").prepend(make("li", { class: "quiet" }, "Nothing really alike. The nearest:"));
  if (!found.length) $("matches").append(make("li", { class: "quiet" }, "The index is empty."));
  $("alike").hidden = false;
}

// What of the source belongs to what of the tree

for (const [kind, on] of [["mouseover", true], ["focusin", true], ["mouseout", false], ["focusout", false]])
  $("why").addEventListener(kind, event => {
    const at = event.target.closest("[data-n]") || event.target.querySelector(":scope > [data-n]");
    if (at) for (const one of document.querySelectorAll(`[data-n="${at.dataset.n}"]`))
      one.classList.toggle("on", on);
  });
$("source").addEventListener("click", event => {
  const node = event.target.dataset.n && $("tree").querySelector(`[data-n="${event.target.dataset.n}"]`);
  for (let above = node && node.closest("details"); above; above = above.parentElement.closest("details"))
    above.open = true;
  if (node) node.scrollIntoView({ block: "nearest" });
});

// What people do

let pause;
$("code").addEventListener("input", () => {
  filename = null;
  clearTimeout(pause);
  pause = setTimeout(guess, PAUSE);
});
$("form").addEventListener("submit", event => { event.preventDefault(); tell(); });
document.addEventListener("keydown", event => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); tell(); }
});
$("language").addEventListener("change", () => { if ($("code").value.trim()) tell(); });
$("sample").addEventListener("change", async event => {
  const name = event.target.value;
  if (!name) return;
  setCode(await (await fetch(`samples/${name}`)).text(), name);
  tell();
});
$("file").addEventListener("change", event => { if (event.target.files[0]) open(event.target.files[0]); event.target.value = ""; });
document.addEventListener("dragover", event => { event.preventDefault(); $("form").classList.add("drop"); });
for (const kind of ["dragleave", "drop"])
  document.addEventListener(kind, () => $("form").classList.remove("drop"));
document.addEventListener("drop", event => {
  event.preventDefault();
  const [file] = event.dataTransfer.files;
  if (file) return open(file);
  const dropped = event.dataTransfer.getData("text/plain");
  if (dropped) { setCode(dropped, null); tell(); }
});

ask("v1/about").then(found => {
  about = found;
  $("about").firstChild.textContent =
    `treecaps ${found.treecaps} tells one of ${found.labels.length} classes from the syntax tree; the model is ${found.model}. `;
  $("language").append(...found.languages.map(name => make("option", { value: name }, name)));
  $("sample").append(...found.samples.map(one => make("option", { value: one.name }, one.name)));
}).catch(error => say(error.message, true));
