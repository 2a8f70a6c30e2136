// Elements, colours, numbers, axes and icons: what every figure uses. Names come from users, so text
// goes into the page as text nodes only.
const make = (tag, attributes = {}, ...children) => {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key in element) element[key] = value;
    else element.setAttribute(key, value);
  }
  element.append(...children);
  return element;
};

const theme = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
const seriesColour = (index) => theme("c" + (index % 7));
const kFont = 'system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';

/// Three significant digits, as the program prints them.
const number = (value) => {
  if (value === null || !Number.isFinite(value)) return "\u2013";
  const size = Math.abs(value);
  if (size !== 0 && (size < 0.00095 || size >= 99999.5)) return value.toExponential(2).replace("e+", "e");
  if (size >= 99.95) return value.toFixed(0);
  return String(Number(value.toPrecision(3)));
};
const time = (us) =>
  us >= 1e6 ? number(us / 1e6) + " s" : us >= 1e3 ? number(us / 1e3) + " ms" : number(us) + " \u00b5s";
const percent = (share) => (100 * share).toFixed(share < 0.0995 ? 1 : 0) + "%";

const superscript = (text) => text.replace(/[-0-9]/g, (c) => (c === "-" ? "\u207b" : "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079"[c]));
const decadeText = (value) => {
  const power = Math.round(Math.log10(value));
  return power > 4 || power < -3 ? "10" + superscript(String(power)) : String(Number(value.toPrecision(1)));
};

/// Options of a logarithmic axis: a label and a strong line at decades, faint lines at 2 to 9 between.
/// With few decades 2 and 5 have labels as well.
const logAxis = (title) => ({
  type: "logarithmic",
  title: { display: true, text: title, color: theme("soft"), font: { family: kFont, size: 12.5 } },
  border: { display: false },
  grid: {
    color: (context) => theme(isDecade(context.tick.value) ? "grid" : "grid-minor"),
    borderColor: theme("faint"),
    drawTicks: false,
  },
  afterBuildTicks: (axis) => {
    const ticks = [];
    for (let power = Math.floor(Math.log10(axis.min)); power <= Math.ceil(Math.log10(axis.max)); ++power)
      for (let step = 1; step < 10; ++step) {
        const value = Number((step * 10 ** power).toPrecision(1));
        if (value >= axis.min * 0.999999 && value <= axis.max * 1.000001) ticks.push({ value });
      }
    axis.ticks = ticks;
  },
  ticks: {
    autoSkip: false,
    maxRotation: 0,
    padding: 6,
    color: theme("soft"),
    font: { family: kFont, size: 12 },
    callback: function (value) {
      if (isDecade(value)) return decadeText(value);
      const first = Math.round(value / 10 ** Math.floor(Math.log10(value) + 1e-9));
      return Math.log10(this.max / this.min) < 2 && (first === 2 || first === 5) ? number(value) : "";
    },
  },
});
const isDecade = (value) => Math.abs(Math.log10(value) - Math.round(Math.log10(value))) < 1e-6;

const linearAxis = (title) => ({
  type: "linear",
  beginAtZero: true,
  title: { display: !!title, text: title, color: theme("soft"), font: { family: kFont, size: 12.5 } },
  grid: { color: theme("grid"), borderColor: theme("faint"), drawTicks: false },
  ticks: { padding: 6, color: theme("soft"), font: { family: kFont, size: 12 }, callback: (value) => number(value) },
});

/// What stands for a mark or a line in tables and legends. One shape per kernel, as defined in a figure's SVG; after
/// seven shapes the letters alone tell kernels apart. fill: "open", "half" (left half) or "full".
const icon = (colour, width, content) =>
  make("span", { className: "icon", innerHTML: `<svg class="figure" viewBox="0 0 ${width} 14" width="${width}" height="14">${content(colour)}</svg>` });
const markIcon = (shape, fill, colour) => icon(colour, 16, (c) =>
  `<g transform="translate(8 7) scale(5.5)" stroke-width="0.3"><use class="card" href="#s${shape % 7}"/>` +
  (fill === "half" ? `<use class="${c}" href="#h${shape % 7}"/>` : "") +
  `<use class="${c}" href="#s${shape % 7}" fill-opacity="${fill === "full" ? 1 : 0}"/></g>`);
const lineIcon = (dash, colour, rises) => icon(colour, 30, (c) =>
  `<line class="${c}" x1="2" y1="${rises ? 13 : 7}" x2="28" y2="${rises ? 1 : 7}" stroke-width="2" stroke-dasharray="${dash}"/>`);

const save = (name, url) => make("a", { href: url, download: name }).click();
const fileName = (title, extension) => (title.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "") || "figure") + extension;
