// Beside a roofline: the points with their full names, the roofs with their values, what marks mean.
const buildPanel = (figure) => {
  const { data } = figure;
  const search = make("input", { type: "search", placeholder: "Filter by name", ariaLabel: "Filter by name",
    oninput: (event) => { figure.filter = event.target.value.toLowerCase(); figure.isolated = null; figure.draw(); } });
  const controls = make("div", { className: "controls" }, search);
  if (figure.hasTimes && data.kernels.length > 3) {
    const count = make("output", {}, String(data.kernels.length));
    const slider = make("input", { type: "range", min: 1, max: data.kernels.length, value: data.kernels.length,
      oninput: () => { figure.top = Number(slider.value); figure.isolated = null; count.textContent = slider.value; figure.draw(); } });
    controls.append(make("label", {}, "Top by time", slider, count));
  }
  controls.append(make("button", { onclick: () => {
    figure.isolated = null;
    figure.filter = search.value = "";
    const slider = controls.querySelector("[type=range]");
    if (slider) { slider.value = slider.max; slider.dispatchEvent(new Event("input")); }
    figure.draw();
  } }, "Show all"));
  figure.pointRows = make("tbody");
  figure.roofRows = make("tbody");
  if (data.points.length)
    figure.panel.append(controls, make("div", { className: "scroll" }, make("table", { className: "points" },
      heads(["", "Name", "AI", "TFLOP/s", "Of roof", "Bound by", ...(figure.hasTimes ? ["Time"] : [])], [2, 3, 4, 6]), figure.pointRows)));
  figure.panel.append(make("h3", {}, "Roofs"), make("div", { className: "scroll" }, make("table", { className: "roofs" },
    heads(["", "Name", "Value", "Ridge", "Origin"], [2, 3]), figure.roofRows)));
};

const heads = (titles, numbers) =>
  make("thead", {}, make("tr", {}, ...titles.map((title, i) => make("th", { className: numbers.includes(i) ? "number" : "" }, title))));

/// Rebuilt on every change of theme or choice; there are few rows.
const refreshPanel = (figure) => {
  const { data } = figure;
  figure.pointRows.replaceChildren(...figure.order.map((index) => {
    const kernel = data.kernels[index], points = kernel.points.map((i) => data.points[i]), first = points[0];
    const cell = (text, className = "") => make("td", { className }, text);
    const levels = points.length > 1 || first.level !== "DRAM"
      ? "AI " + points.map((point) => point.level + " " + number(point.ai)).join(", ") : "";
    const below = [levels, first.missing && "not drawn: " + first.missing].filter(Boolean);
    const choose = () => figure.isolate(index);
    return make("tr", {
      tabIndex: 0, className: (figure.isolated === index ? "chosen " : "") + (figure.isShown(index) ? "" : "off"),
      onclick: choose, onkeydown: (event) => { if (event.key === "Enter") choose(); },
      onmouseenter: () => figure.isShown(index) && figure.showTip(kernel.points[0]), onmouseleave: hideTip,
    },
    make("td", { className: "letter" }, markIcon(index, first.fill, figure.levelColour(first.level)), kernel.letter),
    make("td", { className: "name" }, kernel.name, ...below.map((text) => make("div", { className: "level" }, text))),
    cell(first.ai > 0 ? number(first.ai) : "0", "number"), cell(number(first.tflops), "number"), cell(first.percent_text || "\u2013", "number"), cell(first.bound_by || "\u2013"),
    ...(figure.hasTimes ? [cell(first.time_us > 0 ? time(first.time_us) : "\u2013", "number")] : []));
  }));
  figure.roofRows.replaceChildren(...data.roofs.map((roof, index) => make("tr", {
    className: figure.hiddenRoofs.has(index) ? "off" : "",
    title: "Click to hide or show",
    onclick: () => { if (!figure.hiddenRoofs.delete(index)) figure.hiddenRoofs.add(index); figure.draw(); },
  },
  make("td", {}, lineIcon(roof.solid ? "" : "7 4", roof.slope ? figure.levelColour(roof.level) : "ink", roof.slope)),
  make("td", {}, roof.name), make("td", { className: "number" }, roof.value),
  make("td", { className: "number" }, roof.ridge_text || "\u2013"), make("td", {}, roof.origin))));
  refreshLegend(figure);
};

const refreshLegend = (figure) => {
  const { data } = figure, items = [];
  const mark = (fill, text) => items.push(make("span", {}, markIcon(0, fill, "soft"), text));
  const stroke = (dash, text, colour = "soft") => items.push(make("span", {}, lineIcon(dash, colour, false), text));
  const fills = new Set(data.points.map((point) => point.fill));
  if (fills.has("open")) mark("open", "model or simulated");
  if (fills.has("half")) mark("half", "bytes from counters");
  if (fills.has("full")) mark("full", "measured");
  if (data.roofs.some((roof) => !roof.solid)) stroke("7 4", "roof from the datasheet");
  if (data.roofs.some((roof) => roof.solid)) stroke("", "roof measured or sustained");
  if (data.points.some((point) => point.roof_tflops > point.tflops * 1.02)) stroke("2 3", "headroom");
  if (data.levels.length > 1) data.levels.forEach((level) => stroke("", level, figure.levelColour(level)));
  if (data.points.some((point) => point.share > 0)) items.push(make("span", {}, "area: share of time"));
  figure.legend.replaceChildren(...items.flatMap((item) => [item, " "]));
};
