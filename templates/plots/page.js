// The page: one figure for each block of the data, the tip that follows the pointer, light and dark.
const tip = document.getElementById("tip");
const showTip = (x, y, title, rows, note) => {
  tip.replaceChildren(make("b", {}, title),
    make("dl", {}, ...rows.flatMap(([key, value]) => [make("dt", {}, key), make("dd", {}, value)])), ...(note ? [make("p", {}, note)] : []));
  tip.hidden = false;
  const { width, height } = tip.getBoundingClientRect(), gap = 16;
  const left = x + gap + width < innerWidth ? x + gap : x - gap - width;
  tip.style.left = Math.max(6, Math.min(left, innerWidth - width - 6)) + "px";
  tip.style.top = Math.max(6, Math.min(y + gap, innerHeight - height - 6)) + "px";
};
const hideTip = () => { tip.hidden = true; };

const data = JSON.parse(document.getElementById("data").textContent);
const kFigures = {
  roofline: (card, block) => new RooflineFigure(card, block),
  bars: (card, block) => new ChartFigure(card, block, barsConfig),
  lines: (card, block) => new ChartFigure(card, block, linesConfig),
  heatmap: (card, block) => new HeatmapFigure(card, block),
};

const dark = matchMedia("(prefers-color-scheme: dark)");
document.documentElement.dataset.theme = dark.matches ? "dark" : "light";
const cards = document.querySelectorAll("main > .card");
const figures = data.blocks.flatMap((block, i) => (kFigures[block.kind] ? [kFigures[block.kind](cards[i], block)] : []));

/// What was drawn is left where a test can read it.
const drawAll = () => {
  let points = 0;
  for (const figure of figures) {
    figure.draw();
    if (figure instanceof RooflineFigure) points += figure.data.points.filter((point) => !point.missing).length;
  }
  document.documentElement.dataset.drawn = figures.length;
  document.documentElement.dataset.points = points;
};
const setTheme = (name) => {
  document.documentElement.dataset.theme = name;
  drawAll();
};
document.getElementById("theme").addEventListener("click", () =>
  setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
dark.addEventListener("change", (event) => setTheme(event.matches ? "dark" : "light"));
document.getElementById("save-data").addEventListener("click", () =>
  save(fileName(data.title, ".json"), URL.createObjectURL(new Blob([JSON.stringify(data, null, 1)], { type: "application/json" }))));
drawAll();
