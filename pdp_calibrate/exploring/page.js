// Sends the form whenever it changes, and shows what comes back. No mathematics here.
"use strict";
const form = document.getElementById("answers");
const numbers = document.getElementById("numbers");
const pictures = document.getElementById("pictures");

// One request at a time: numbers first, then which pictures there are, then each that is in sight.
// Whatever changed while one was under way is asked about next, as the form is by then.
let changed = true;
let named = false;
let working = false;
const insight = new Set();

async function ask(place, more = {}) {
  const body = new URLSearchParams(new FormData(form));
  for (const [name, value] of Object.entries(more)) body.set(name, value);
  const answer = await fetch(place, { method: "POST", body });
  return answer.text();
}

async function work() {
  if (working) return;
  working = true;
  document.body.classList.add("busy");
  try {
    for (;;) {
      if (changed) {
        changed = false;
        const answer = document.createElement("div");
        answer.innerHTML = await ask("view");
        if (changed) continue;
        for (const part of answer.children) {
          document.getElementById(part.dataset.part).replaceChildren(...part.childNodes);
        }
        named = false;
        continue;
      }
      if (!named) {
        const figures = await ask("pictures");
        if (changed) continue;
        named = true;
        place(figures);
        continue;
      }
      const next = [...insight].find((one) => one.isConnected && "open" in one.dataset);
      if (!next) break;
      const drawn = await ask("picture", { picture: next.dataset.picture });
      if (changed) continue;
      delete next.dataset.open;
      next.querySelector(".drawing").innerHTML = drawn;
    }
  } catch (error) {
    numbers.textContent = "The page is closed: start pdp-calibrate explore again.";
  } finally {
    working = false;
    document.body.classList.remove("busy");
  }
}

const watcher = new IntersectionObserver((seen) => {
  for (const one of seen) {
    if (one.isIntersecting) insight.add(one.target);
    else insight.delete(one.target);
  }
  if (named) work();
}, { rootMargin: "300px" });

function place(figures) {
  const before = new Map();
  for (const one of pictures.children) before.set(one.dataset.picture, one);
  const fresh = document.createElement("div");
  fresh.innerHTML = figures;
  watcher.disconnect();
  insight.clear();
  const now = [...fresh.children].map((one) => {
    const known = before.get(one.dataset.picture);
    if (known) {  // stays until the new one is drawn
      one.querySelector(".drawing").replaceChildren(...known.querySelector(".drawing").childNodes);
    }
    return one;
  });
  pictures.replaceChildren(...now);
  for (const one of now) watcher.observe(one);
}

function refresh() {
  changed = true;
  work();
}

function records(selector) {
  return [...document.querySelectorAll(selector)].map((row) =>
    Object.fromEntries([...row.querySelectorAll("[data-field]")].map((one) => [one.dataset.field, one.value])));
}

function fillNames() {
  const names = records("#columns > .column").map((one) => one.name);
  const chosen = [...form.querySelectorAll("#groups, #order_by, #column, #by")];
  for (const one of form.querySelectorAll("#questions [data-field=column]")) chosen.push(one);
  for (const one of chosen) {
    const value = one.dataset.value ?? one.value;
    delete one.dataset.value;
    if (document.getElementById("columns")) {
      one.replaceChildren(new Option(one.dataset.empty, ""), ...names.map((name) => new Option(name, name)));
    } else if (one.id !== "column") {
      one.replaceChildren(...[...document.getElementById("column").options].map((o) => o.cloneNode(true)));
    }
    one.value = value;
    if (one.selectedIndex < 0) one.value = "";
  }
}

function showFields() {
  for (const row of form.querySelectorAll(".row")) {
    row.dataset.kind = row.querySelector("[data-field=kind]").value;
    const named = row.querySelector("[data-field=name]");
    for (const one of named ? row.querySelectorAll("legend, .remove span") : []) {
      one.textContent = one.matches("legend") ? `Column ${named.value}` : named.value;
    }
  }
  if (form.elements.schema) form.elements.schema.value = JSON.stringify(records("#columns > .column"));
  form.elements.also.value = JSON.stringify(records("#questions > .question"));
  const said = new FormData(form);
  for (const part of form.querySelectorAll("[data-when]")) {
    const [name, wanted] = part.dataset.when.split("=");
    part.hidden = !wanted.split("|").includes(said.get(name));
  }
  for (const out of form.querySelectorAll("output[for]")) {
    out.value = form.elements[out.htmlFor.value].value;
  }
}

function settle() {
  fillNames();
  showFields();
}

function add(kind, where) {
  const row = document.getElementById(kind).content.cloneNode(true).firstElementChild;
  document.getElementById(where).append(row);
  settle();
  row.querySelector("[data-field]").focus();
  refresh();
}

let timer = 0;
form.addEventListener("input", (event) => {
  if (event.target.matches("[data-field=name]")) settle();
  else showFields();
  clearTimeout(timer);
  timer = setTimeout(refresh, 60);
});
form.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  if (button.id === "add_column") add("column_row", "columns");
  if (button.id === "add_question") add("question_row", "questions");
  if (button.matches(".remove")) {
    const row = button.closest(".row");
    const after = row.parentElement.nextElementSibling;
    row.remove();
    settle();
    (after.matches("button") ? after : form.querySelector("#add_column, #add_question")).focus();
    refresh();
  }
});
form.addEventListener("submit", (event) => {
  if (!event.submitter || !event.submitter.formAction.match(/\.(py|sh|toml|html|csv)$/)) {
    event.preventDefault();
  }
});
// A model learned from private rows is refused, and its numbers are not even kept in this page.
function publicPart(text) {
  try {
    const found = JSON.parse(text);
    if (found.provenance !== "private") return text;
    return JSON.stringify({ schema: found.schema, type: found.type, provenance: "private" });
  } catch (error) {
    return text.slice(0, 1000);  // which is no model
  }
}

document.getElementById("model_file")?.addEventListener("change", async (event) => {
  const file = event.target.files[0];
  form.elements.model.value = file ? publicPart(await file.text()) : "";
  form.elements.model_name.value = file ? file.name : "";
  refresh();
});
document.getElementById("release")?.addEventListener("click", async () => {
  document.body.classList.add("busy");
  try {
    document.getElementById("released").innerHTML = await ask("release");
  } finally {
    document.body.classList.remove("busy");
  }
});
settle();
refresh();
