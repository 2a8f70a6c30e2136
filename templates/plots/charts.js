// Bars, lines and the heatmap.
const baseOptions = (scales) => ({
  animation: false,
  responsive: true,
  maintainAspectRatio: false,
  layout: { padding: { top: 14 } },
  scales,
  plugins: {
    legend: { position: "bottom", labels: { color: theme("soft"), boxWidth: 14, boxHeight: 8, font: { family: kFont, size: 12 } } },
    tooltip: { backgroundColor: theme("ink"), titleColor: theme("card"), bodyColor: theme("card") },
  },
});

class ChartFigure {
  constructor(card, data, config) {
    this.data = data;
    this.config = config;
    this.canvas = make("canvas", { role: "img", ariaLabel: data.title });
    card.querySelector(".body").append(make("div", { className: "plot" }, this.canvas));
    card.querySelector(".tools").append(make("button", { onclick: () => this.savePng() }, "PNG"));
  }
  draw() {
    if (this.chart) this.chart.destroy();
    const config = this.config(this.data);
    config.options.plugins.legend.display = config.data.datasets.length > 1;
    this.chart = new Chart(this.canvas, config);
  }
  savePng() {
    const out = make("canvas", { width: this.canvas.width, height: this.canvas.height });
    const context = out.getContext("2d");
    context.fillStyle = theme("card");
    context.fillRect(0, 0, out.width, out.height);
    context.drawImage(this.canvas, 0, 0);
    save(fileName(this.data.title, ".png"), out.toDataURL("image/png"));
  }
}

/// The values on the bars, where each fits into its bar's width.
const barValues = {
  id: "values",
  afterDatasetsDraw: (chart) => {
    Object.assign(chart.ctx, { font: "11px " + kFont, fillStyle: theme("soft"), textAlign: "center", textBaseline: "middle" });
    chart.data.datasets.forEach((dataset, series) => {
      if (!chart.isDatasetVisible(series)) return;
      chart.getDatasetMeta(series).data.forEach((bar, i) => {
        const text = number(dataset.data[i]);
        if (dataset.data[i] > 0 && chart.ctx.measureText(text).width <= bar.width + 6)
          chart.ctx.fillText(text, bar.x, bar.y - 8);
      });
    });
  },
};

const barsConfig = (data) => {
  const options = baseOptions({
    x: { grid: { display: false }, ticks: { color: theme("soft"), font: { family: kFont, size: 12 }, autoSkip: false } },
    y: data.log_y ? logAxis(data.y_title) : linearAxis(data.y_title),
  });
  options.plugins.tooltip.callbacks = { label: (item) => " " + item.dataset.label + ": " + number(item.raw) };
  return {
    type: "bar",
    data: {
      labels: data.labels,
      datasets: data.series.map((series, i) => ({ label: series.name, data: series.values, backgroundColor: seriesColour(i),
        borderRadius: 3, maxBarThickness: 64 })),
    },
    options,
    plugins: [barValues],
  };
};

/// Points of a line beyond which none has a mark of its own.
const kMostMarks = 40;

/// Behind the lines, from the low to the high end of each series.
const lineBands = (series) => ({
  id: "bands",
  beforeDatasetsDraw: (chart) => {
    const { x, y } = chart.scales, { left, right, top, bottom } = chart.chartArea;
    chart.ctx.save();
    chart.ctx.beginPath();
    chart.ctx.rect(left, top, right - left, bottom - top);
    chart.ctx.clip();
    series.forEach(({ points, band }, i) => {
      if (!band || !chart.isDatasetVisible(i)) return;
      const end = (side) => points.map((point, k) => [x.getPixelForValue(point[0]), y.getPixelForValue(band[k][side])]);
      chart.ctx.beginPath();
      [...end(0), ...end(1).reverse()].forEach(([px, py], k) => (k ? chart.ctx.lineTo(px, py) : chart.ctx.moveTo(px, py)));
      chart.ctx.globalAlpha = 0.1;
      chart.ctx.fillStyle = seriesColour(i);
      chart.ctx.fill();
    });
    chart.ctx.restore();
  },
});

const linesConfig = (data) => {
  const axis = (title, log) => (log ? logAxis(title) : { ...linearAxis(title), beginAtZero: false });
  const scales = { x: axis(data.x_title, data.log_x), y: axis(data.y_title, data.log_y) };
  const values = [...data.series.flatMap((series) => [...series.points.map((point) => point[1]), ...(series.band || []).flat()]), ...data.marks.map((mark) => mark.y)]
    .filter((value) => Number.isFinite(value) && (!data.log_y || value > 0));
  if (values.length) {
    const low = Math.min(...values), high = Math.max(...values);
    scales.y.suggestedMin = data.log_y ? low / 1.5 : Math.min(0, low);
    scales.y.suggestedMax = data.log_y ? high * 1.5 : high;
  }
  const options = baseOptions(scales);
  options.plugins.legend.labels.usePointStyle = true;
  options.interaction = { mode: "nearest", intersect: false };
  options.plugins.tooltip.callbacks = {
    title: (items) => data.x_title + " " + number(items[0].raw.x),
    label: (item) => {
      const band = ((data.series[item.datasetIndex] || {}).band || [])[item.dataIndex];
      return " " + item.dataset.label + ": " + number(item.raw.y) + (band ? " (" + number(band[0]) + " to " + number(band[1]) + ")" : "");
    },
  };
  // A mark, such as a ridge, is a horizontal line over all points.
  const across = data.series.flatMap((series) => series.points.map((point) => point[0]));
  const mark = ({ name, y }) => ({ label: name + "  " + number(y), data: [Math.min(...across), Math.max(...across)].map((x) => ({ x, y })),
    showLine: true, borderWidth: 1.4, borderColor: theme("ink"), backgroundColor: theme("ink"), borderDash: [7, 4], pointRadius: 0, pointStyle: "line" });
  return {
    type: "scatter",
    data: {
      datasets: [...data.series.map((series, i) => ({
        label: series.name, data: series.points.map(([x, y]) => ({ x, y })), showLine: true, borderWidth: 2, borderColor: seriesColour(i),
        backgroundColor: seriesColour(i), borderDash: i < 7 ? [] : [6, 4], pointRadius: series.points.length > kMostMarks ? 0 : 3, pointStyle: ["circle", "rect", "triangle", "rectRot"][i % 4],
      })), ...data.marks.map(mark)],
    },
    options,
    plugins: [lineBands(data.series)],
  };
};

/// A table, so that it can be read, searched and copied; the shade grows with the distance in decades.
class HeatmapFigure {
  constructor(card, data) {
    this.data = data;
    this.body = card.querySelector(".body");
  }
  draw() {
    const { data } = this;
    const cell = (value) => {
      if (value === null || !Number.isFinite(value)) return make("td", {}, "\u2013");
      const above = value >= data.threshold;
      const distance = value > 0 && data.threshold > 0 ? Math.min(1, Math.abs(Math.log10(value / data.threshold)) / 2) : 1;
      const shade = (0.12 + 0.4 * distance).toFixed(3);
      return make("td", { style: "background: rgba(" + theme(above ? "above" : "below") + ", " + shade + ")",
        title: data.value_title + ": " + value },
      make("small", {}, above ? data.above : data.below), number(value));
    };
    const head = make("tr", {}, make("th", { className: "axis" }, data.y_title + " \u2193   " + data.x_title + " \u2192"),
      ...data.x_labels.map((label) => make("th", {}, label)));
    const rows = data.values.map((row, i) => make("tr", {}, make("th", {}, data.y_labels[i] || ""), ...row.map(cell)));
    this.body.replaceChildren(make("div", { className: "scroll" }, make("table", { className: "heat" }, make("thead", {}, head), make("tbody", {}, ...rows))),
      make("p", { className: "legend" }, data.value_title + "; " + data.below + ": below " + number(data.threshold) + ", " + data.above + ": at or above it. The shade grows with the distance."));
  }
}
