"use strict";
// The pages work without this file; it draws the chart and adds live rows.

const COLOURS = ["#3b82f6", "#d97706", "#16a34a", "#db2777", "#8b5cf6", "#0d9488"];
const CHART_EVERY_MS = 10000;
const MOST_ROWS = 500;

function ink() {
  return getComputedStyle(document.documentElement).getPropertyValue("--ink").trim();
}

function lineColour() {
  return getComputedStyle(document.documentElement).getPropertyValue("--line").trim();
}

function drawChart(place, answer) {
  place.replaceChildren();
  if (answer.gates.length === 0) {
    place.textContent = place.dataset.empty;
    return;
  }
  const hours = (_, moments) => moments.map((moment) => new Date(moment * 1000).toISOString().slice(11, 16));
  const axis = { stroke: ink(), grid: { stroke: lineColour() }, ticks: { stroke: lineColour() } };
  const lines = answer.gates.map((gate, number) => ({
    label: gate,
    stroke: COLOURS[number % COLOURS.length],
    width: 2,
    points: { show: true, size: 5 },
  }));
  const options = {
    width: Math.max(280, place.clientWidth),
    height: 160,
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC"),
    series: [{ label: "UTC", value: (_, moment) => (moment === null ? "--" : hours(_, [moment])[0]) }, ...lines],
    axes: [{ ...axis, values: hours }, axis],
    scales: { y: { range: (_, low, high) => [0, Math.max(1, high)] } },
  };
  new uPlot(options, answer.data, place);
}

async function refreshChart(place) {
  const answer = await fetch(place.dataset.source, { headers: { Accept: "application/json" } });
  if (answer.ok) {
    drawChart(place, await answer.json());
  }
}

function startChart() {
  const place = document.getElementById("chart");
  if (place === null) {
    return;
  }
  const refresh = () => refreshChart(place).catch(() => undefined);
  refresh();
  setInterval(() => document.hidden || refresh(), CHART_EVERY_MS);
}

function addRow(body, html) {
  const holder = document.createElement("tbody");
  // Escaped where it was made: our own server's template.
  holder.innerHTML = html;
  for (const row of holder.rows) {
    row.classList.add("fresh");
  }
  body.prepend(...holder.rows);
  if (body.rows.length > MOST_ROWS) {
    while (body.rows.length > MOST_ROWS) {
      body.rows[body.rows.length - 1].remove();
    }
    leadOnFrom(body.rows[body.rows.length - 1].dataset.at);
  }
}

// What is taken off the end is on the page of older events.
function leadOnFrom(moment) {
  const older = document.querySelector("a[rel=next]");
  if (older !== null && moment !== undefined) {
    older.href = `/timeline?before=${encodeURIComponent(moment)}`;
  }
}

function startStream() {
  const body = document.getElementById("live");
  const button = document.getElementById("pause");
  const told = document.getElementById("stream-state");
  if (body === null) {
    return;
  }
  let waiting = [];
  let isPaused = false;
  const source = new EventSource(body.dataset.source);
  const tell = (word) => { told.textContent = told.dataset[word]; };
  source.addEventListener("open", () => tell(isPaused ? "paused" : "live"));
  source.addEventListener("error", () => tell("lost"));
  source.addEventListener("end", () => { source.close(); location.reload(); });
  source.addEventListener("row", (event) => {
    if (isPaused) {
      waiting.push(event.data);
      waiting = waiting.slice(-MOST_ROWS);
    } else {
      addRow(body, event.data);
    }
  });
  button.hidden = false;
  button.addEventListener("click", () => {
    isPaused = !isPaused;
    button.setAttribute("aria-pressed", String(isPaused));
    tell(isPaused ? "paused" : "live");
    if (!isPaused) {
      waiting.forEach((html) => addRow(body, html));
      waiting = [];
    }
  });
  window.addEventListener("pagehide", () => source.close());
}

startChart();
startStream();
