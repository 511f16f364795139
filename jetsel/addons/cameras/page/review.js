// Review of saved images: one at a time, by keys or buttons.
"use strict";

const at = (id) => document.getElementById(id);
let shown = null; // what /review/next returned last
let names = new Map(); // name of a folder -> the same as the folder has it
let suggested = []; // identifier and label of the classes that the daemon holds likely
let unknown = null; // what was entered and is no folder: entered again, it becomes one
let isBusy = false;

async function ask(path, body) {
  const options = body === undefined ? {} : { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  const reply = await fetch(path, options);
  const found = await reply.json();
  if (!reply.ok) throw new Error(found.error);
  return found;
}

function problem(words) {
  at("problem").hidden = !words;
  at("problem").textContent = words || "";
}

function closeOther() {
  if (at("other").contains(document.activeElement)) document.activeElement.blur(); // or the next key still goes there
  at("other").hidden = true;
  at("class").value = "";
  suggested = [];
  offer(null);
}

function show(next) {
  shown = next;
  closeOther();
  at("one").hidden = next.image === null;
  at("done").hidden = next.image !== null;
  at("left").textContent = next.left === 1 ? "1 image is left" : `${next.left} images are left`;
  for (const id of ["undo", "undo-last"]) at(id).disabled = !next.can_undo;
  if (next.image === null) return;
  at("question").textContent = `Is this ${next.label.replaceAll("-", " ")} (${next.identifier})?`;
  at("image").src = `review/image?path=${encodeURIComponent(next.image)}`;
  at("image").alt = `An image that was saved as ${next.label}`;
  names = new Map(next.classes.map((one) => [one.normalize("NFC"), one]));
  at("classes").replaceChildren(...next.classes.map((one) => new Option(one)));
}

async function run(work) {
  if (isBusy) return;
  isBusy = true;
  try {
    await work();
  } catch (error) {
    problem(error.message);
  } finally {
    isBusy = false;
  }
}

const load = (after) => run(async () => show(await ask(`review/next${after ? `?after=${encodeURIComponent(after)}` : ""}`)));

function decide(verdict, identifier) {
  if (!shown || shown.image === null) return undefined;
  return run(async () => {
    try {
      show(await ask("review/decide", { image: shown.image, verdict, identifier: identifier ?? null }));
      problem("");
    } catch (error) {
      problem(error.message);
      show(await ask(`review/next?after=${encodeURIComponent(shown.image)}`)); // somebody else has decided, perhaps
    }
  });
}

function openOther() {
  if (!shown || shown.image === null) return;
  at("other").hidden = false;
  at("class").focus();
  const asked = shown.image;
  ask(`review/suggest?path=${encodeURIComponent(asked)}`).then((classes) => {
    if (!shown || shown.image !== asked || at("other").hidden) return;
    suggested = classes;
    offer(unknown);
  }).catch(() => {});
}

function chosen(text) { // the folder that has exactly this name; null: nothing is guessed
  return names.get(text.trim().normalize("NFC")) ?? null;
}

function offer(text) { // the classes to choose from: those with this text in their names, then those that the daemon suggests
  unknown = text;
  at("unknown").textContent = text === null ? "" : `There is no class "${text}" yet. Press Enter again to make it, or choose another:`;
  const near = text === null ? [] : [...names.values()].filter((one) => one.toLowerCase().includes(text.toLowerCase()));
  at("offered").replaceChildren(...[...near.slice(0, 20).map((one) => [one, one]), ...suggested].map(([identifier, label]) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = label === identifier ? label : `${label} (${identifier})`;
    button.addEventListener("click", () => decide("wrong", identifier));
    return button;
  }));
}

function enter() {
  const text = at("class").value.trim().normalize("NFC");
  const folder = chosen(text);
  if (folder !== null || (text && text === unknown)) decide("wrong", folder ?? text);
  else if (text) offer(text);
}

const undo = () => run(async () => {
  const { image } = await ask("review/undo", {});
  problem("");
  const all = await ask("review/next");
  const [identifier, name] = image.split("/");
  const dash = name.lastIndexOf("-");
  show({ ...all, image, identifier, label: dash > 0 ? name.slice(0, dash) : name });
});

const KEYS = {
  r: () => decide("right"), Enter: () => decide("right"), w: openOther, d: () => decide("discard"),
  n: () => shown && shown.image !== null && load(shown.image), u: undo,
};

document.addEventListener("keydown", (event) => {
  if (at("other").contains(event.target)) {
    if (event.key === "Escape") closeOther();
    if (event.key === "Enter" && event.repeat) event.preventDefault(); // a key that is held decides once
    return;
  }
  if (event.repeat || event.ctrlKey || event.altKey || event.metaKey || (event.key === "Enter" && event.target instanceof HTMLButtonElement)) return;
  const action = KEYS[event.key];
  if (action) {
    event.preventDefault();
    action();
  }
});
at("other").addEventListener("submit", (event) => {
  event.preventDefault();
  enter();
});
at("class").addEventListener("input", () => offer(null));
at("right").addEventListener("click", KEYS.r);
at("wrong").addEventListener("click", openOther);
at("discard").addEventListener("click", KEYS.d);
at("later").addEventListener("click", KEYS.n);
at("undo").addEventListener("click", undo);
at("undo-last").addEventListener("click", undo);
load();
