// Sends the form whenever it changes, and shows what comes back. No mathematics here.
"use strict";
const form = document.getElementById("answers");
const meaning = document.getElementById("meaning");
const pictures = document.getElementById("pictures");
let turn = 0;
let timer = 0;

async function ask(place) {
  const body = new URLSearchParams(new FormData(form));
  const answer = await fetch(place, { method: "POST", body });
  return answer.text();
}

function showFields() {
  const said = new FormData(form);
  for (const part of form.querySelectorAll("[data-when]")) {
    const [name, wanted] = part.dataset.when.split("=");
    part.hidden = !wanted.split("|").includes(said.get(name));
  }
  for (const out of form.querySelectorAll("output[for]")) {
    out.value = form.elements[out.htmlFor.value].value;
  }
}

async function refresh() {
  const mine = ++turn;
  document.body.classList.add("busy");
  try {
    const words = await ask("view");
    if (mine !== turn) return;
    meaning.innerHTML = words;
    meaning.dataset.turn = mine;
    const drawn = await ask("pictures");
    if (mine === turn) pictures.innerHTML = drawn;
  } catch (error) {
    meaning.textContent = "The page is closed: start pdp-calibrate explore again.";
  } finally {
    if (mine === turn) document.body.classList.remove("busy");
  }
}

form.addEventListener("input", () => {
  showFields();
  clearTimeout(timer);
  timer = setTimeout(refresh, 100);
});
form.addEventListener("submit", (event) => {
  if (!event.submitter || !event.submitter.formAction.match(/\.(py|sh|toml|html)$/)) {
    event.preventDefault();
  }
});
document.getElementById("model_file").addEventListener("change", async (event) => {
  const file = event.target.files[0];
  form.elements.model.value = file ? await file.text() : "";
  refresh();
});
document.getElementById("release").addEventListener("click", async () => {
  document.getElementById("released").innerHTML = await ask("release");
});
showFields();
refresh();
