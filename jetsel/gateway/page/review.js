// Review of saved images: one at a time, by keys or buttons.
"use strict";

const at = (id) => document.getElementById(id);
let shown = null; // what /review/next returned last
let names = new Map(); // label or identifier in small letters -> identifier
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
  at("other").hidden = true;
  at("class").value = "";
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
  names = new Map(next.classes.map((one) => [one.toLowerCase(), one]));
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
    if (!shown || shown.image !== asked) return;
    for (const [identifier, label] of classes) {
      names.set(label.toLowerCase(), identifier);
      names.set(identifier.toLowerCase(), identifier);
    }
    at("classes").replaceChildren(...[...names].map(([name, identifier]) => new Option(identifier, name)));
  }).catch(() => {});
}

function chosen(text) { // what was typed: a name, the beginning or a part of one, else a new identifier
  const wanted = text.trim().toLowerCase();
  const found = [...names.keys()];
  const name = found.find((one) => one === wanted) || found.find((one) => one.startsWith(wanted)) || found.find((one) => one.includes(wanted));
  return name ? names.get(name) : text.trim();
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
  if (event.target === at("class")) {
    if (event.key === "Escape") closeOther();
    return;
  }
  if (event.ctrlKey || event.altKey || event.metaKey || (event.key === "Enter" && event.target instanceof HTMLButtonElement)) return;
  const action = KEYS[event.key];
  if (action) {
    event.preventDefault();
    action();
  }
});
at("other").addEventListener("submit", (event) => {
  event.preventDefault();
  decide("wrong", chosen(at("class").value));
});
at("right").addEventListener("click", KEYS.r);
at("wrong").addEventListener("click", openOther);
at("discard").addEventListener("click", KEYS.d);
at("later").addEventListener("click", KEYS.n);
at("undo").addEventListener("click", undo);
at("undo-last").addEventListener("click", undo);
load();
