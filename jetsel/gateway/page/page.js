// The page of the gateway: live status by server-sent events, charts by plotly, and an answer for a dropped photograph.
"use strict";

const HISTORY = 300; // seconds that charts over time show
const SHARE_S = 10; // seconds whose answers a share of operating points is of
const CHEAPEST_S = 300; // of the cheapest operating point in use, after which the page gives notice
const SILENT_MS = 4000; // without an event for so long, something is wrong with the gateway itself
const at = (id) => document.getElementById(id);
const percent = (share) => (share > 0.9995 && share < 1 ? "over 99.9 %" : `${(100 * share).toFixed(share > 0.99 && share < 1 ? 1 : 0)} %`);
const ms = (value) => (value === null || value === undefined ? "-" : `${value < 10 ? value.toFixed(2) : value.toFixed(1)} ms`);
const history = { at: [], rate: [], times: [], watts: [], mj: [], answers: [] };
let before = null; // the last status
let heardAt = Date.now();
let shown = null; // the URL of the picture that is shown

const POLICIES = {
  "cascade": "It runs a cheap model first, and a larger one if the answer is not sure enough; the mean of both then answers.",
  "chain": "It computes cheap features of the image, and takes the path that paid best on the most similar calibration images.",
};
const policyWords = (name) => (name.startsWith("single:") ? "It always runs one model." : POLICIES[name] || "");

function element(name, text, attributes) {
  const made = document.createElement(name);
  if (text !== undefined && text !== null) made.textContent = text;
  for (const [key, value] of Object.entries(attributes || {})) made.setAttribute(key, value);
  return made;
}

// Charts.

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

function draw(id, traces, layout, words) {
  const box = at(id);
  box.setAttribute("aria-label", words);
  box.classList.add("drawn"); // plotly fills the height that the box has when it draws
  const axis = { gridcolor: colour("line"), zerolinecolor: colour("line"), automargin: true };
  Plotly.react(box, traces.map((one) => ({ ...one, x: [...one.x], y: [...one.y] })), { // arrays that grew count as the same
    margin: { l: 48, r: 12, t: 8, b: 40 },
    paper_bgcolor: "transparent",
    plot_bgcolor: "transparent",
    font: { color: colour("text"), size: 12 },
    legend: { orientation: "h", y: 1.2 },
    ...layout,
    xaxis: { ...axis, ...(layout.xaxis || {}) },
    yaxis: { ...axis, ...(layout.yaxis || {}) },
  }, { displayModeBar: false, responsive: true });
}

function none(id) {
  const box = at(id);
  if (box.hasChildNodes()) Plotly.purge(box);
  box.classList.remove("drawn");
  box.replaceChildren();
}

// Live status.

function familyOf(status) {
  return status.families.find((one) => one.name === status.default_family) || status.families[0];
}

function adaptive(status) { // the families whose operating point changes with the load
  return status.families.filter((one) => one.front && one.front.points.length > 1);
}

function pointAnswers(status) { // answers so far, by family and operating point
  return Object.fromEntries(adaptive(status).map((family) => [family.name, Object.fromEntries(family.front.points.map((one) => [one.policy, one.answers]))]));
}

function remember(status) {
  const power = status.power;
  let rate = null;
  let mj = null;
  if (before && before.instance === status.instance) {
    const seconds = status.uptime_s - before.uptime_s;
    const answers = (status.requests.ok || 0) - (before.requests.ok || 0);
    rate = seconds > 0 ? answers / seconds : null;
    const joules = (one) => (one.power && one.power.judged ? one.power.judged.estimated_j : null);
    if (answers > 0 && joules(status) !== null && joules(before) !== null) mj = (1e3 * (joules(status) - joules(before))) / answers;
  } else {
    history.times.fill(null); // the counts of a restarted daemon begin anew
  }
  const row = { at: new Date(), rate, times: status.answers.stages.total?.counts, watts: power.watts ?? null, mj, answers: pointAnswers(status) };
  for (const [key, kept] of Object.entries(history)) {
    kept.push(row[key] ?? null);
    if (kept.length > HISTORY) kept.shift();
  }
  before = status;
  return rate;
}

function figures(id, rows) {
  at(id).replaceChildren(...rows.map(([name, value]) => {
    const box = element("div");
    box.append(element("dt", name), element("dd", value));
    return box;
  }));
}

function latency(status, share) { // that this share of the answers of the last HISTORY seconds did not exceed, as jetsel status has it
  const known = history.times.filter((one) => one);
  if (!known.length) return null;
  const [then, now] = [known[0], known[known.length - 1]];
  const counts = now.map((count, i) => count - then[i]);
  let left = share * counts.reduce((sum, count) => sum + count, 0);
  if (!left) return null;
  let lower = 0;
  for (const [i, upper] of status.answers.bounds_ms.entries()) {
    if (left <= counts[i]) return lower + ((upper - lower) * left) / counts[i];
    left -= counts[i];
    lower = upper;
  }
  return lower;
}

function showNow(status, rate) {
  figures("now", [
    ["answers per second", rate === null ? "-" : rate.toFixed(1)],
    ["median latency", ms(latency(status, 0.5))],
    ["95th percentile", ms(latency(status, 0.95))],
    ["99th percentile", ms(latency(status, 0.99))],
    ["answers so far", String(status.requests.ok || 0)],
    ["refused or failed", String(Object.entries(status.requests).reduce((sum, [code, n]) => sum + (code === "ok" ? 0 : n), 0))],
    ["in the queue", status.queue.waiting === null ? "-" : String(status.queue.waiting + status.queue.working)],
  ]);
  draw("rate", [{ x: history.at, y: history.rate, mode: "lines", name: "answers per second", line: { color: colour("main") } }],
    { yaxis: { rangemode: "tozero", title: { text: "answers per second" } } },
    rate === null ? "Answers per second over time; none yet" : `Answers per second over time; now ${rate.toFixed(1)}`);
}

function showShares(status) {
  const family = familyOf(status);
  const counts = (family && status.answers.by_model[family.name]) || {};
  const names = family ? family.models.map((model) => model.name).filter((name) => counts[name]) : [];
  const sum = names.reduce((total, name) => total + counts[name], 0);
  if (!sum) return none("shares");
  const shares = names.map((name) => counts[name] / sum);
  draw("shares", [{ type: "bar", orientation: "h", y: names, x: shares, text: shares.map(percent), textposition: "outside", cliponaxis: false, marker: { color: colour("main") } }],
    { xaxis: { tickformat: ".0%", range: [0, 1.15], title: { text: `share of ${sum} answers of ${family.name}` } }, yaxis: { autorange: "reversed" } },
    names.map((name, i) => `${name} ${percent(shares[i])}`).join(", "));
  return undefined;
}

function showFront(status) {
  const family = familyOf(status);
  const points = (family && family.operating_points) || [];
  if (!points.length) {
    at("front-words").textContent = "Without a calibration there is nothing to compare. Make one with: jetsel calibrate IMAGES";
    return none("front");
  }
  const used = family.default_policy;
  at("front-words").textContent = `Measured on held-out images of its calibration. Default: ${used}; ${family.because}.`;
  const kind = (isUsed, name, size, symbol, tone) => { // the names of the others would overlap: they appear under the pointer
    const chosen = points.filter((one) => (one.policy === used) === isUsed);
    return {
      x: chosen.map((one) => one.mean_ms), y: chosen.map((one) => one.accuracy), text: chosen.map((one) => one.policy.replace("single:", "")),
      mode: isUsed ? "markers+text" : "markers", textposition: "bottom center", name, marker: { size, symbol, color: colour(tone) }, cliponaxis: false,
    };
  };
  draw("front", [kind(false, "other policies and single models", 8, "circle", "quiet"), kind(true, "default", 14, "star", "main")],
    { xaxis: { title: { text: "mean time, ms" }, rangemode: "tozero" }, yaxis: { tickformat: ".0%", title: { text: "right" } } },
    points.map((one) => `${one.policy}: right on ${percent(one.accuracy)} in ${ms(one.mean_ms)}`).join("; "));
  return undefined;
}

function answersAt(i, family, point) { // in the last SHARE_S seconds; a restart of the daemon begins anew
  const count = (place) => history.answers[place]?.[family]?.[point] ?? 0;
  return Math.max(0, count(i) - count(Math.max(0, i - SHARE_S)));
}

function showPoints(status) {
  const families = adaptive(status);
  const names = families.map((one) => one.name).join("\n");
  at("points-section").hidden = !families.length;
  if (at("points").dataset.families !== names) { // at first, or after a reload
    at("points").dataset.families = names;
    at("points").replaceChildren(...families.flatMap(({ name }) => [
      element("p", null, { id: `points-words-${name}` }),
      element("div", null, { id: `points-${name}`, class: "chart", role: "img" }),
      element("ul", null, { id: `points-legend-${name}`, class: "legend" }),
    ]));
  }
  for (const { name, front: { points, last } } of families) {
    const tone = (i) => `hsl(${210 - (180 * i) / (points.length - 1)}, 65%, 45%)`; // blue for the most accurate, orange for the cheapest
    const sums = history.at.map((_, i) => points.reduce((sum, one) => sum + answersAt(i, name, one.policy), 0));
    const shares = points.map((one) => sums.map((sum, i) => (sum ? answersAt(i, name, one.policy) / sum : 0)));
    at(`points-words-${name}`).textContent = `Share of the answers of ${name} in the last ${SHARE_S} s by operating point${last ? `; last: ${last}` : ""}.`;
    draw(`points-${name}`, points.map((one, i) => ({ x: history.at, y: shares[i], name: one.policy, mode: "lines", stackgroup: "shares", line: { width: 0, color: tone(i) }, fillcolor: tone(i) })),
      { showlegend: false, yaxis: { tickformat: ".0%", range: [0, 1] } },
      points.map((one, i) => `${one.policy} ${percent(shares[i][shares[i].length - 1])}`).join(", "));
    at(`points-legend-${name}`).replaceChildren(...points.map((one, i) => {
      const item = element("li");
      const ink = element("span", null, { "aria-hidden": "true" });
      ink.style.background = tone(i);
      item.append(ink, `${one.policy}: ${(100 * one.accuracy).toFixed(1)} % right`);
      return item;
    }));
  }
}

function showCheapest(status) {
  const families = adaptive(status).filter((one) => one.front.cheapest_s >= CHEAPEST_S);
  notice("cheapest", families.map(({ name, front }) => `Family ${name} has used its cheapest operating point, ${front.floor}, for ${Math.floor(front.cheapest_s / 60)} min: send fewer requests, raise the power budget, or use a faster device.`).join(" "));
}

function showPower(status) {
  const power = status.power;
  if (!power || power.reason || power.watts === null) {
    at("power-words").textContent = (power && power.reason) || "No power is measured.";
    return none("power");
  }
  const judged = power.judged || {};
  at("power-words").textContent = `${power.watts.toFixed(2)} W now${power.idle_w === null ? "" : `, ${power.idle_w.toFixed(2)} W at rest`}` +
    `${judged.ratio ? `; measured energy is ${judged.ratio.toFixed(2)} times the estimates` : ""}.`;
  draw("power", [
    { x: history.at, y: history.watts, mode: "lines", name: "W", line: { color: colour("main") } },
    { x: history.at, y: history.mj, mode: "lines+markers", name: "mJ an answer, estimated", yaxis: "y2", line: { color: colour("second") } },
  ], {
    yaxis: { rangemode: "tozero", title: { text: "W" } },
    yaxis2: { overlaying: "y", side: "right", rangemode: "tozero", title: { text: "mJ" }, automargin: true },
    margin: { l: 48, r: 48, t: 8, b: 40 },
  }, `Watts over time; now ${power.watts.toFixed(2)}`);
  return undefined;
}

function showDrift(status) {
  const family = familyOf(status);
  const drift = family && family.drift;
  const words = at("drift-words");
  if (!drift) {
    words.textContent = "The calibration holds no expected values: calibrate again to compare the images.";
    return none("drift");
  }
  words.className = drift.hint ? "wrong" : "";
  words.textContent = drift.hint || (drift.reason ? `Not known yet: ${drift.reason}.` : `Yes: no feature of the last ${drift.photographs} checked images has changed by much.`);
  const found = Object.entries(drift.indices).sort((a, b) => b[1] - a[1]).slice(0, 6);
  if (!found.length) return none("drift");
  draw("drift", [{ type: "bar", orientation: "h", y: found.map(([name]) => name), x: found.map(([, index]) => index), marker: { color: found.map(([, index]) => colour(index > 0.25 ? "bad" : "main")) } }],
    { xaxis: { title: { text: "population stability index: over 0.25 is a change" }, rangemode: "tozero" }, yaxis: { autorange: "reversed" } },
    found.map(([name, index]) => `${name} ${index.toFixed(2)}`).join(", "));
  return undefined;
}

const pictures = new Map(); // by the answer's id: a thumbnail, or null if there is none

function pictured(cell, id) {
  if (!pictures.has(id) && "thumbnails" in at("recent").dataset) {
    pictures.set(id, null);
    fetch(`thumbnails/${encodeURIComponent(id)}`).then((got) => (got.status === 200 ? got.blob() : null)).then((blob) => blob && pictures.set(id, URL.createObjectURL(blob))).catch(() => {});
  }
  if (pictures.get(id)) cell.prepend(element("img", null, { src: pictures.get(id), alt: "" }));
}

function showCameras(cameras) {
  at("cameras-section").hidden = !cameras.length;
  if (!cameras.length) return;
  at("cameras").replaceChildren(...cameras.map((one) => {
    const row = element("tr");
    const name = element("th", one.region === null ? one.name : `${one.name}, ${one.region}`, { scope: "row" });
    const label = one.connected ? (one.label === null ? "none yet" : `${one.label}, ${percent(one.probability)}`) : `disconnected: ${one.reason}`;
    row.append(name, element("td", label), element("td", one.since === null ? "-" : new Date(one.since).toLocaleTimeString()),
      ...[one.frames_read, one.frames_skipped, one.frames_asked].map((count) => element("td", String(count))));
    return row;
  }));
}

function showRecent(status) {
  const ids = new Set((status.recent || []).map((one) => one.id));
  for (const [id, url] of pictures) {
    if (ids.has(id)) continue;
    if (url) URL.revokeObjectURL(url);
    pictures.delete(id);
  }
  const rows = (status.recent || []).slice(0, 20).map((one) => {
    const row = element("tr");
    const label = element("th", one.label + (one.in_doubt ? " (in doubt)" : ""), { scope: "row" });
    pictured(label, one.id);
    row.append(label, element("td", one.ago_s < 60 ? `${one.ago_s.toFixed(0)} s` : `${(one.ago_s / 60).toFixed(0)} min`),
      element("td", percent(one.probability)), element("td", one.ran.join(", ")), element("td", one.policy),
      element("td", one.total_ms.toFixed(1)), element("td", one.energy_mj === null ? "-" : one.energy_mj.toFixed(1)));
    return row;
  });
  if (!rows.length) rows.push(element("tr"));
  if (!rows[0].hasChildNodes()) rows[0].append(element("th", "none yet", { scope: "row", colspan: "7" }));
  at("recent").replaceChildren(...rows);
}

function fill(select, values) {
  const wanted = values.join("\n");
  if (select.dataset.values === wanted) return;
  const chosen = select.value;
  select.dataset.values = wanted;
  select.replaceChildren(...values.map(([value, words]) => element("option", words, { value })));
  if (values.some(([value]) => value === chosen)) select.value = chosen;
}

function showChoices(status) {
  fill(at("family"), status.families.map((one) => [one.name, `${one.name}, ${one.classes} classes`]));
  if (!at("family").dataset.touched && status.default_family) at("family").value = status.default_family;
  const family = status.families.find((one) => one.name === at("family").value);
  if (family) fill(at("policy"), [["", `the default: ${family.default_policy}`], ...family.policies.map((name) => [name, name.replace("single:", "only ")])]);
}

function isPromise(level) {
  return level !== null && level < 1;
}

function showPromises(status) {
  const family = status.families.find((one) => one.name === at("family").value);
  if (!family) return;
  const hasDefault = isPromise(family.wrong_at_most);
  const levels = family.promises.map((one) => [String(one.wrong_at_most), `at most ${percent(one.wrong_at_most)}`]);
  const none = hasDefault ? [["", `the default: at most ${percent(family.wrong_at_most)}`], ["1", "no promise"]] : [["", "no promise"]];
  fill(at("level"), [...none, ...levels]);
  const shares = family.promises.map((one) => `at most ${percent(one.wrong_at_most)} wrong: ${percent(one.answered)} answered`);
  at("promises").textContent = shares.length ? `${family.name} can promise, on images like those of its calibration: ${shares.join("; ")}.` : `No share of wrong answers is promised for ${family.name}. To find out which shares can be promised, run: jetsel calibrate IMAGES`;
}

function showState(status) {
  const models = status.families.flatMap((family) => family.models);
  const ready = models.filter((model) => model.state === "ready" || model.state === "unloaded").length;
  at("state").textContent = `${status.state}${status.progress ? `, ${status.progress}` : ""}: ${ready} of ${models.length} models in ` +
    `${status.families.length} famil${status.families.length === 1 ? "y" : "ies"}, jetsel ${status.version}, up ${status.uptime_s === null ? "-" : Math.round(status.uptime_s)} s`;
}

function notice(id, words) {
  const box = at(id);
  box.hidden = !words;
  if (box.textContent !== words) box.textContent = words;
}

function away(words) {
  notice("away", words);
  if (words) at("state").textContent = "the daemon is not reachable";
}

function listen() {
  const events = new EventSource("events");
  events.addEventListener("cameras", (event) => showCameras(JSON.parse(event.data)));
  events.addEventListener("status", (event) => {
    heardAt = Date.now();
    away("");
    const status = JSON.parse(event.data);
    const rate = remember(status);
    showState(status);
    showChoices(status);
    showPromises(status);
    showNow(status, rate);
    showShares(status);
    showFront(status);
    showPoints(status);
    showCheapest(status);
    showPower(status);
    showDrift(status);
    showRecent(status);
  });
  events.addEventListener("away", (event) => {
    heardAt = Date.now();
    away(`No answer from the daemon: ${JSON.parse(event.data).error}. This page continues when it is back.`);
  });
  setInterval(() => {
    if (Date.now() - heardAt > SILENT_MS) away("No answer from the gateway: start it with jetsel gateway. This page continues when it is back.");
  }, 1000);
}

// A photograph.

function bars(rows) {
  const list = element("dl", null, { class: "bars" });
  const most = Math.max(...rows.map(([, value]) => value), 1e-9);
  for (const [name, value, words] of rows) {
    const bar = element("dd", null, { "aria-hidden": "true" });
    const ink = element("span", null, { class: "bar" });
    ink.style.width = `${(100 * value) / most}%`;
    bar.append(ink);
    list.append(element("dt", name), bar, element("dd", words));
  }
  return list;
}

function isUnknown(answer) {
  return answer.in_doubt && answer.wrong_at_most !== null;
}

function title(answer) {
  const box = document.createDocumentFragment();
  const likely = `${answer.label}, ${percent(answer.probability)} sure`;
  box.append(element("h3", isUnknown(answer) ? "Unknown" : likely));
  if (isUnknown(answer)) box.append(element("p", `Most likely ${likely}; ${answer.because}.`, { class: "wrong" }));
  else if (answer.wrong_at_most !== null) box.append(element("p", `Promised: at most ${percent(answer.wrong_at_most)} of such answers are wrong.`, { class: "quiet" }));
  return box;
}

function why(answer) {
  const box = document.createDocumentFragment();
  const explained = answer.explanation || {};
  box.append(element("h4", `Why ${answer.model}?`));
  box.append(element("p", `Policy: ${answer.policy}. ${policyWords(answer.policy)}`));
  const steps = element("ol", null, { class: "steps" });
  for (const ran of answer.ran) steps.append(element("li", `${ran.model} ran (${ran.because}): ${percent(ran.confidence)} sure, ${ms(ran.latency_ms)}.`));
  if (!isUnknown(answer)) steps.append(element("li", `${answer.because}.`));
  box.append(steps);
  if (answer.in_doubt && !isUnknown(answer)) box.append(element("p", "No model was likely to be right on this image, so the fallback answered.", { class: "wrong" }));
  if (answer.cut_short) box.append(element("p", "The deadline passed before the policy had finished.", { class: "wrong" }));
  if (explained.policy_because) box.append(element("p", `Why this policy: ${explained.policy_because}.`, { class: "quiet" }));
  const energy = answer.energy_mj === null ? `Energy: not known, ${answer.energy_reason}.` : `Energy: ${answer.energy_mj.toFixed(1)} mJ above idle, estimated by the calibration.`;
  box.append(element("p", energy, { class: "quiet" }));
  return box;
}

function showAnswer(answer, url) {
  const box = element("div", null, { class: "answer" });
  box.append(element("img", null, { src: url, alt: "the image of this request" }));
  const words = element("div");
  words.append(title(answer));
  words.append(bars(answer.top_k.map((one) => [one.label, one.probability, percent(one.probability)])));
  words.append(why(answer));
  const times = element("div");
  times.append(element("h4", `Where the ${ms(answer.stages_ms.total)} went`));
  const stages = answer.stages_ms;
  const rows = [["in the queue", stages.queue], ["decoding", stages.decode], ["features", stages.features], ["choosing", stages.choice], ["waiting for a model", stages.waiting], ["making inputs", stages.input],
    ...stages.inference.map((took, i) => [answer.ran[i].model, took])];
  times.append(bars(rows.filter(([, took]) => took !== null && took !== undefined).map(([name, took]) => [name, took, ms(took)])));
  const features = (answer.explanation && answer.explanation.features) || null;
  times.append(element("h4", "Features that the policy used"));
  if (features) times.append(bars(Object.entries(features).map(([name, value]) => [name, 0, value.toPrecision(4)])));
  else times.append(element("p", "None: this policy uses the models' answers.", { class: "quiet" }));
  box.append(words, times);
  at("answer").replaceChildren(box);
}

async function ask(file) {
  if (!file) return;
  if (shown) URL.revokeObjectURL(shown);
  shown = URL.createObjectURL(file);
  at("answer").replaceChildren(element("p", "asking ..."));
  const query = new URLSearchParams({ explain: "true" });
  if (at("family").value) query.set("family", at("family").value);
  if (at("policy").value) query.set("policy", at("policy").value);
  const level = at("level").value;
  if (level) query.set("wrong_at_most", level);
  if (level && isPromise(Number(level))) query.set("on_doubt", "use"); // so that it is shown what is likely
  try {
    const reply = await fetch(`classify?${query}`, { method: "POST", headers: { "Content-Type": "application/octet-stream" }, body: file });
    const found = await reply.json();
    if (reply.ok) showAnswer(found, shown);
    else at("answer").replaceChildren(element("p", `${found.code === "in-doubt" ? "Unknown" : "No answer"}: ${found.error}.`, { class: "wrong" }));
  } catch (error) {
    at("answer").replaceChildren(element("p", `No answer: the gateway cannot be reached (${error.message}).`, { class: "wrong" }));
  }
}

function begin() {
  const drop = at("drop");
  at("file").addEventListener("change", (event) => ask(event.target.files[0]));
  at("family").addEventListener("change", (event) => { event.target.dataset.touched = "yes"; at("policy").value = ""; at("level").value = ""; if (before) { showChoices(before); showPromises(before); } });
  for (const name of ["dragenter", "dragover"]) drop.addEventListener(name, (event) => { event.preventDefault(); drop.classList.add("over"); });
  for (const name of ["dragleave", "drop"]) drop.addEventListener(name, () => drop.classList.remove("over"));
  drop.addEventListener("drop", (event) => { event.preventDefault(); ask(event.dataTransfer.files[0]); });
  listen();
}

begin();
