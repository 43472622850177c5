// One device among the demo's: records an answer with the SDK, and shows what left, what it says,
// and the estimate. What is shown of a report comes from the SDK's own list of reports.
"use strict";

const { endpoint, dashboard, shift } = document.body.dataset;
const registry = deniable.metrics;
const client = new deniable.Client(registry, {
  endpoint,
  consent: true,
  // Yesterday, like the crowd's clock.
  clock: () => Date.now() / 1000 - Number(shift),
});

const SVG = "http://www.w3.org/2000/svg";
const percent = (share, digits = 0) => `${(100 * share).toFixed(digits)}%`;
const WORDS = { true: "yes", false: "no" };
const word = (value) => WORDS[value] ?? value;
const and = (words) => words.join(", ").replace(/, ([^,]*)$/, " and $1");

/** The values that a report of subset selection names. */
function namedValues(metric, columns) {
  if (typeof columns === "number") return [metric.values[columns]];
  if (Array.isArray(columns)) return columns.map((column) => metric.values[column]);
  // A bitmap: base64 for URLs, the lowest bit of the first byte first.
  const bytes = atob(columns.replace(/-/g, "+").replace(/_/g, "/"));
  return metric.values.filter((_, at) => (bytes.charCodeAt(at >> 3) >> (at & 7)) & 1);
}

function draw(name, attributes) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}

/** A bar for a share, with an interval or a mark for what was believed before. */
function bar(share, { low, high, before, faint }) {
  const at = (part) => 100 * Math.min(1, Math.max(0, part));
  const box = { viewBox: "0 0 100 20", preserveAspectRatio: "none", "aria-hidden": "true" };
  const picture = draw("svg", box);
  picture.append(
    draw("rect", { class: "track", x: 0, y: 4, width: 100, height: 12, rx: 1 }),
    draw("rect", { class: faint ? "faint" : "bar", x: 0, y: 4, width: at(share), height: 12, rx: 1 }),
  );
  const line = (kind, x1, y1, x2, y2) =>
    picture.append(draw("line", { class: kind, x1, y1, x2, y2 }));
  if (before !== undefined) line("before", at(before), 1, at(before), 19);
  if (low !== undefined) {
    line("whisker", at(low), 10, at(high), 10);
    for (const end of [low, high]) line("whisker", at(end), 6, at(end), 14);
  }
  return picture;
}

function fill(table, rows) {
  const body = table.tBodies[0];
  body.replaceChildren();
  for (const { name, picture, cells, named } of rows) {
    const row = body.insertRow();
    if (named) row.className = "named";
    const head = document.createElement("th");
    head.scope = "row";
    head.textContent = word(name);
    row.append(head);
    row.insertCell().append(picture);
    for (const text of cells) row.insertCell().textContent = text;
  }
}

/** Show a report, and how it changes what a stranger believes who took all answers for equally
 * likely. The device keeps its answer with probability memo / 2^53, or another one; a report names
 * what is kept with probability fresh / 2^53. */
function showReport(card, name, report) {
  const metric = registry.metrics[name];
  const { size, k, memo, fresh } = metric.parameters;
  const [kept, told] = [memo / 2 ** 53, fresh / 2 ** 53];
  const named = namedValues(metric, report.columns);
  // A report names a value that is not kept with one that is, or in place of it.
  const hit = kept * told + ((1 - kept) * (told * (k - 1) + (1 - told) * k)) / (size - 1);
  const inside = hit / k;
  const outside = (1 - hit) / (size - k);
  const { metric: _, scheme, window, row, columns } = report;
  card.querySelector("pre").textContent = JSON.stringify(
    { metric: name, scheme, window, ...(row ? { row } : {}), columns },
    null,
    1,
  ).replace(/\n */g, " ");
  const said = card.querySelector(".said");
  const names = document.createElement("strong");
  names.textContent = and(named.map(word));
  said.replaceChildren(
    "It sent ",
    names,
    `. The true answer is among what is sent with probability ${percent(hit)}; otherwise it is not.`,
  );
  card.querySelector(".belief").textContent =
    `Nobody can tell which of the two happened here. The odds between any two answers change by a ` +
    `factor of at most ${Math.exp(metric.reveals.report).toFixed(2)} (ε = ${metric.reveals.report.toFixed(2)}).`;
  fill(
    card.querySelector(".beliefs"),
    metric.values.map((value) => {
      const isNamed = named.includes(value);
      const now = isNamed ? inside : outside;
      const picture = bar(now, { before: 1 / size, faint: !isNamed });
      return { name: value, picture, cells: [percent(1 / size), percent(now)], named: isNamed };
    }),
  );
  card.querySelector(".more").href = `${dashboard}/metric/${name}`;
  card.querySelector(".answer").hidden = false;
}

async function showCrowd(card, name) {
  const response = await fetch(`estimate.json?metric=${name}`);
  if (!response.ok) throw new Error("the estimate is not there");
  const { n, values } = await response.json();
  const widest = Math.max(...values.map(({ low, high }) => (high - low) / 2));
  card.querySelector(".crowd").textContent =
    `${n.toLocaleString("en")} reports, and yours is one of them. Together they give each share ` +
    `to within ± ${(100 * widest).toFixed(1)} points.`;
  card.querySelector(".together").hidden = false;
  fill(
    card.querySelector(".shares"),
    values.map(({ value, estimate, low, high, truth }) => ({
      name: value,
      picture: bar(estimate, { low, high }),
      cells: [percent(estimate, 1), percent(truth, 1)],
    })),
  );
}

async function showLedger() {
  const reports = await client.sent();
  const box = document.getElementById("device");
  box.hidden = !reports.length;
  const spent = Object.entries(registry.metrics).flatMap(([name, metric]) => {
    const count = reports.filter((each) => each.metric === name).length;
    const sum = metric.reveals.memo.toFixed(2);
    return count ? [`${sum} of ${metric.lifetime_epsilon} for “${metric.description}”`] : [];
  });
  box.querySelector(".ledger").textContent = `Its ledger has spent ε ${and(spent)}`;
  return reports;
}

function makeCard(name, metric) {
  const card = document.getElementById("question").content.firstElementChild.cloneNode(true);
  card.dataset.metric = name;
  card.querySelector("h2").textContent = metric.description;
  const choices = card.querySelector(".choices");
  choices.setAttribute("aria-label", metric.description);
  for (const value of metric.values) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = word(value);
    button.addEventListener("click", () => void answer(card, name, value, button));
    choices.append(button);
  }
  document.getElementById("questions").append(card);
  return card;
}

const lock = (card) =>
  card.querySelectorAll(".choices button").forEach((each) => (each.disabled = true));

async function answer(card, name, value, button) {
  const state = card.querySelector(".state");
  lock(card);
  button.setAttribute("aria-pressed", "true");
  state.textContent = "Adding noise and sending …";
  try {
    client.record(name, registry.metrics[name].type === "boolean" ? value === "true" : value);
    const done = await client.flush(10);
    const report = (await showLedger()).find((each) => each.metric === name);
    if (!report) throw new Error(`status ${client.status}`);
    showReport(card, name, report);
    state.textContent = done
      ? "Sent. Your answer itself is stored nowhere, not even in this browser."
      : "The collector has not acknowledged it yet; the same bytes are sent again later.";
    if (done) await showCrowd(card, name);
  } catch (error) {
    state.textContent = `This browser did not answer: ${error.message}. Private data settings or a signal like Global Privacy Control switch the SDK off.`;
  }
}

async function begin() {
  const cards = Object.entries(registry.metrics).map(([name, metric]) => makeCard(name, metric));
  for (const report of await showLedger()) {
    const card = cards.find((each) => each.dataset.metric === report.metric);
    if (!card) continue;
    lock(card);
    showReport(card, report.metric, report);
    card.querySelector(".state").textContent =
      "This device has answered for the day. Which answer it was, not even this page knows any more.";
    await showCrowd(card, report.metric);
  }
}

document.getElementById("renew").addEventListener("click", async () => {
  await client.close();
  const deleting = indexedDB.deleteDatabase(`deniable:${registry.app}`);
  deleting.onsuccess = deleting.onerror = () => location.reload();
});

void begin();
