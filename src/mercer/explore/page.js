// The controls of the page: what is asked of the server, and the words of its answers.

import { Plot, chooseColours } from "./plot.js";

const REACH = 8;  // the slider goes from 1/8 to 8 times the usual bandwidth
const REST = 200;  // milliseconds without a move after which the picture is refined
const LISTED = 8;  // modes in the table
const KERNELS = { gaussian: "Gaussian", laplace: "Laplace", matern: "Matérn 3/2" };
const $ = (id) => document.getElementById(id);

const plot = new Plot($("plot"));
let info, rows;  // about the tables, and about the columns that are shown
let scene = {};  // what is drawn
let moving = false, again = false;  // whether a quick picture is on its way, and out of date
let resting;  // the timer of the refinement
let choosing = new AbortController(), refining = new AbortController(), testing = new AbortController();

// --- the server -----------------------------------------------------------------------------------

async function ask(question, body, signal) {
  const options = { method: "POST", signal };
  if (body instanceof File) options.body = body;
  else options.body = JSON.stringify(body ?? {});
  let reply;
  try {
    reply = await fetch(question, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("mercer does not answer. If it was stopped, start it again and open its new address.");
  }
  const answer = await reply.json();
  if (!reply.ok) throw new Error(answer.error);
  return decode(answer);
}

// Arrays come as base64: a typed array, or a list of rows.
function decode(value) {
  if (Array.isArray(value)) return value.map(decode);
  if (value === null || typeof value !== "object") return value;
  if (!("shape" in value)) return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, decode(v)]));
  const bytes = Uint8Array.from(atob(value.data), (c) => c.charCodeAt(0)).buffer;
  const flat = value.type === "i4" ? new Int32Array(bytes) : new Float64Array(bytes);
  if (value.shape.length === 1) return flat;
  const [n, d] = value.shape;
  return Array.from({ length: n }, (_, i) => Array.from(flat.subarray(i * d, (i + 1) * d)));
}

// Run what the user started; errors are shown in words, and answers to old questions ignored.
function attempt(action) {
  return async (...given) => {
    try {
      await action(...given);
    } catch (error) {
      if (error.name !== "AbortError") tell(error.message);
    }
  };
}

function tell(sentence) {
  $("error").textContent = sentence;
  $("error").hidden = !sentence;
}

// --- what is chosen -------------------------------------------------------------------------------

const columns = () => [$("across").value, $("up").value].filter((c) => c !== "").map(Number);
const view = () => document.querySelector("input[name=view]:checked").value;
const bandwidth = () => rows.bandwidths[$("kernel").value] * REACH ** Number($("bandwidth").value);
const question = () => ({ columns: rows.columns, kernel: $("kernel").value, bandwidth: bandwidth() });
const names = () => rows.columns.map((c) => info.columns[c]);

function fillSelect(select, choices, chosen) {
  select.replaceChildren(...choices.map(([value, text]) => new Option(text, value, false, value === chosen)));
}

const chooseColumns = attempt(async () => {
  choosing.abort();
  choosing = new AbortController();
  const asked = { columns: columns() };
  rows = { ...(await ask("rows", asked, choosing.signal)), ...asked };
  scene = {};
  forgetPoint();
  describeRows();
  runTest();
  refresh();
});

// --- density, modes and basins --------------------------------------------------------------------

// A quick picture at once; while one is on its way, only the last move counts. Then the exact one.
const refresh = attempt(async () => {
  refining.abort();
  clearTimeout(resting);
  $("length").textContent = rows.spread.length === 1
    ? short(bandwidth() * rows.spread[0], 3)
    : `${short(bandwidth(), 3)} standard deviations`;
  again = true;
  if (moving) return;
  moving = true;
  try {
    while (again) {
      again = false;
      const before = rows, [name, show] = view() === "witness" ? ["witness", showWitness] : ["landscape", showLandscape];
      const answer = await ask(name, question());
      if (rows === before) show(answer);
    }
  } finally {
    moving = false;
  }
  resting = setTimeout(refine, REST);
});

const refine = attempt(async () => {
  refining.abort();
  refining = new AbortController();
  if (view() === "witness") return;
  const { signal } = refining, asked = question();
  if (scene.point) await showAscent(asked, signal);
  if (!scene.refined) {
    $("detail").textContent = "refining …";
    showLandscape(await ask("fine", asked, signal), true);
  }
  if (scene.point) await showPreimage(asked, signal);
});

function showLandscape(answer, refined = false) {
  const { low, high } = rows, span = Array.from(low, (a, j) => high[j] - a);
  const before = scene.modes ? scene : null;
  const kept = refined ? { path: scene.path, preimage: scene.preimage } : {};
  scene = { ...answer, ...kept, ...frame("density"), refined, point: scene.point };
  scene.colours = chooseColours(answer, before, span);
  $("count").textContent = `${refined && !answer.exact ? "≥ " : ""}${counted(answer.modes.length, "mode")}`;
  $("detail").textContent = refined ? proofs(answer) : "on a coarse grid";
  $("legend").textContent = low.length === 1
    ? "Colours: basins of the modes. Ticks: rows."
    : "Colours: basins of the modes. Shades: density, from 2 % to 95 % of its maximum. Dots: rows.";
  listModes(answer);
  tell("");
  draw(`${$("count").textContent} of the density of ${scene.names.join(" and ")}`);
}

function proofs({ exact, proved, modes }) {
  if (!exact) return "mean shift was stopped before every row arrived";
  if (proved < modes.length) return `${proved} of them proved to be local maxima`;
  return modes.length === 1 ? "proved to be a local maximum" : "each proved to be a local maximum";
}

function frame(up) {
  const { low, high, samples } = rows;
  return { low, high, samples, names: low.length === 1 ? [...names(), up] : names() };
}

function draw(words) {
  $("plot").setAttribute("aria-label", words);
  plot.show(scene);
}

function listModes({ modes, counts }) {
  const total = rows.samples[0].points.length;
  $("modes").hidden = $("from").hidden = false;
  $("modes").tHead.rows[0].replaceChildren(...["mode", ...names(), "rows"].map((text) => element("th", text)));
  const lines = modes.slice(0, LISTED).map((mode, k) => {
    const chip = element("span", "");
    chip.className = "chip";
    chip.style.background = scene.colours[k];
    const first = element("td", String(k + 1));
    first.prepend(chip);
    const percent = 100 * counts[k] / total;
    const share = percent > 0 && percent < 1 ? "< 1 %" : `${percent.toFixed(0)} %`;
    const line = element("tr", "");
    line.append(first, ...mode.map((x, j) => element("td", coordinate(x, j))), element("td", share));
    return line;
  });
  if (modes.length > LISTED) {
    const line = element("tr", "");
    line.append(element("td", `and ${(modes.length - LISTED).toLocaleString("en")} more`));
    line.firstChild.colSpan = names().length + 2;
    lines.push(line);
  }
  $("modes").tBodies[0].replaceChildren(...lines);
}

// --- a point --------------------------------------------------------------------------------------

async function showAscent(asked, signal) {
  const found = await ask("ascent", { ...asked, point: scene.point }, signal);
  scene.path = { points: found.path, heights: found.heights };
  const end = found.path.at(-1);
  const steps = counted(found.path.length - 1, "step");
  $("ascent").textContent = `Mean shift goes from ${place(scene.point)} to ${place(end)} in ${steps}. ${found.problem}`;
  plot.draw();
}

async function showPreimage(asked, signal) {
  const components = Number($("components").value);
  const found = await ask("preimage", { ...asked, point: scene.point, components }, signal);
  scene.preimage = found;
  const proof = found.verdict === "PROVED_MINIMUM" ? " Proved to be a local minimum of that distance." : "";
  $("preimage").textContent = `Pre-image (diamond) of its projection on ${counted(components, "kernel principal component")}: `
    + `${place(found.point)}, at distance ${short(found.distance)} in feature space.${proof}`;
  $("choice").hidden = false;
  plot.draw();
}

function forgetPoint() {
  $("ascent").textContent = "Click in the plot to see where mean shift goes from there.";
  $("preimage").textContent = "";
  $("choice").hidden = true;
}

// --- a second file --------------------------------------------------------------------------------

const loadSecond = attempt(async () => {
  const file = $("second").files[0];
  if (!file) return;
  if (file.size > info.upload) throw new Error(`${file.name} is larger than ${info.upload >> 20} MB, the most that the page takes`);
  $("pvalue").textContent = "";
  $("test").textContent = `reading ${file.name} …`;
  try {
    info = await ask(`load?name=${encodeURIComponent(file.name)}`, file);
  } catch (error) {
    $("test").textContent = "";
    $("second").value = "";
    throw error;
  }
  compareFiles(true);
});

const removeSecond = attempt(async () => {
  info = await ask("unload");
  $("second").value = "";
  $("pvalue").textContent = $("test").textContent = "";
  compareFiles(false);
});

function compareFiles(compared) {
  $("views").hidden = $("remove").hidden = !compared;
  document.querySelector(`input[name=view][value=${compared ? "witness" : "landscape"}]`).checked = true;
  chooseColumns();
}

function showWitness(answer) {
  scene = { ...answer, ...frame("first minus second"), point: scene.point };
  const [first, second] = info.tables.map((table) => table.name);
  $("count").textContent = "Difference";
  $("detail").textContent = "at this bandwidth";
  $("legend").textContent = `Blue: more of the first file, ${first}. Orange: more of the second, ${second}.`;
  $("modes").hidden = $("from").hidden = true;
  tell("");
  draw(`where ${first} and ${second} differ`);
}

const runTest = attempt(async () => {
  testing.abort();
  if (info.tables.length < 2) return;
  testing = new AbortController();
  $("pvalue").textContent = "";
  $("test").textContent = "testing …";
  let found;
  try {
    found = await ask("test", { columns: rows.columns }, testing.signal);
  } catch (error) {
    if (error.name !== "AbortError") $("test").textContent = "";
    throw error;
  }
  $("pvalue").textContent = `p = ${short(found.pvalue, 2)}`;
  $("test").textContent = `${verdict(found)} Effect size ${short(found.effect_size, 3)}. ${found.rows.map(number).join(" and ")} rows; ${found.how}. `
    + "The p-value does not depend on the slider.";
});

function verdict({ pvalue, statistic }) {
  if (pvalue > 0.05) return "Such a difference is usual for two samples of one distribution. That does not show that they are equal.";
  if (statistic > 0) return "If both files came from one distribution, a difference as large would be rare.";
  return "The files are more alike than two independent samples usually are. Do they share rows?";
}

// --- words ----------------------------------------------------------------------------------------

function describeRows() {
  const facts = [];
  info.tables.forEach((table, k) => {
    const { complete, missing, points } = rows.samples[k];
    facts.push(`${table.name}: ${counted(table.rows, "row")}`);
    if (missing) facts.push(`${counted(missing, "row")} left out: a value is missing in these columns`);
    if (points.length < complete) facts.push(`${number(points.length)} of ${number(complete)} complete rows are used, drawn at random`);
    for (const [name, why] of Object.entries(table.left_out)) facts.push(`column ${name || "(no name)"} left out: ${why}`);
    facts.push(...table.notes);
  });
  $("used").replaceChildren(...facts.map((fact) => element("li", fact)));
  $("file").textContent = info.tables.map((table, k) => {
    const { length } = rows.samples[k].points;
    return `${table.name} · ${length < table.rows ? `${number(length)} of ` : ""}${counted(table.rows, "row")}`;
  }).join("  and  ");
}

function element(tag, text) {
  const made = document.createElement(tag);
  made.textContent = text;
  return made;
}

// A coordinate to a thousandth of its axis.
function coordinate(x, j) {
  const digits = Math.max(0, Math.ceil(3 - Math.log10(rows.high[j] - rows.low[j])));
  return digits > 6 ? short(x) : x.toFixed(digits);
}

const number = (n) => n.toLocaleString("en");
const counted = (n, word) => `${number(n)} ${word}${n === 1 ? "" : "s"}`;
const short = (x, digits = 4) => (x === null ? "unknown" : String(Number(x.toPrecision(digits))));
const place = (point) => {
  const texts = Array.from(point, coordinate);
  return texts.length === 1 ? texts[0] : `(${texts.join(", ")})`;
};

// --- start ----------------------------------------------------------------------------------------

$("bandwidth").addEventListener("input", refresh);
$("kernel").addEventListener("change", refresh);
for (const id of ["across", "up"]) $(id).addEventListener("change", chooseColumns);
for (const radio of document.querySelectorAll("input[name=view]")) radio.addEventListener("change", refresh);
$("components").addEventListener("change", refine);
$("second").addEventListener("change", loadSecond);
$("remove").addEventListener("click", removeSecond);
$("plot").addEventListener("click", (event) => {
  const point = view() === "landscape" && plot.locate(event);
  if (!point) return;
  Object.assign(scene, { point, path: null, preimage: null });
  refine();
});

attempt(async () => {
  info = await ask("tables");
  const choices = info.columns.map((name, i) => [String(i), name]);
  fillSelect($("across"), choices, "0");
  fillSelect($("up"), [["", "(one column)"], ...choices], choices.length > 1 ? "1" : "");
  fillSelect($("kernel"), info.kernels.map((name) => [name, KERNELS[name]]), "gaussian");
  if (info.tables.length > 1) compareFiles(true);
  else await chooseColumns();
})();
