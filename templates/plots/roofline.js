// A roofline: the program has drawn the SVG; this hides kernels and roofs, and says what is under the pointer.
class RooflineFigure {
  constructor(card, data) {
    this.data = data;
    this.hiddenRoofs = new Set();
    this.isolated = null; // a kernel's index
    this.filter = "";
    this.top = data.kernels.length;
    const total = (kernel) => Math.max(0, ...kernel.points.map((i) => data.points[i].time_us || 0));
    this.order = data.kernels.map((_, i) => i).sort((a, b) => total(data.kernels[b]) - total(data.kernels[a]) || a - b);
    this.hasTimes = data.kernels.some((kernel) => total(kernel) > 0);
    this.svg = card.querySelector("svg");
    this.panel = make("div", { className: "panel" });
    this.legend = make("p", { className: "legend" });
    card.querySelector(".body").append(
      make("div", { className: "split" }, make("div", { className: "panel" }, this.svg, this.legend), this.panel));
    card.querySelector(".tools").append(make("button", { onclick: () => this.saveSvg() }, "SVG"));
    const pointAt = (event) => event.target.closest("[data-point]")?.dataset.point;
    this.svg.addEventListener("pointerover", (event) => pointAt(event) ? this.showTip(Number(pointAt(event))) : hideTip());
    this.svg.addEventListener("pointerleave", hideTip);
    this.svg.addEventListener("click", (event) => this.isolate(pointAt(event) ? data.points[pointAt(event)].kernel : null));
    buildPanel(this);
  }

  levelColour(level) {
    return "c" + (Math.max(0, this.data.levels.indexOf(level)) % 7);
  }
  isShown(kernel) {
    if (this.isolated !== null) return kernel === this.isolated;
    return this.order.indexOf(kernel) < this.top && this.data.kernels[kernel].name.toLowerCase().includes(this.filter);
  }
  isolate(kernel) {
    this.isolated = this.isolated === kernel ? null : kernel;
    this.draw();
  }
  draw() {
    const show = (part, shown) => { part.style.display = shown ? "" : "none"; };
    for (const part of this.svg.querySelectorAll("[data-kernels]"))
      show(part, part.dataset.kernels.split(" ").every((kernel) => this.isShown(Number(kernel))));
    for (const part of this.svg.querySelectorAll("[data-roof]"))
      show(part, !this.hiddenRoofs.has(Number(part.dataset.roof)));
    refreshPanel(this);
  }

  /// Everything that is known of the point and of its kernel's other levels.
  showTip(index) {
    const { points, kernels } = this.data, point = points[index], kernel = kernels[point.kernel];
    const rows = kernel.points.map((i) => ["AI, " + points[i].level, points[i].ai > 0 ? number(points[i].ai) + " FLOP/byte" : "0"]);
    rows.push([point.origin === "model" ? "Attainable (model)" : "Achieved", number(point.tflops) + " TFLOP/s"]);
    if (point.roof_tflops > 0) rows.push(["Its roof", number(point.roof_tflops) + " TFLOP/s"], ["Of the roof", point.percent_text]);
    if (point.bound_by) rows.push(["Bound by", point.bound_by]);
    if (point.time_us > 0) rows.push(["Time", time(point.time_us)]);
    if (point.share > 0) rows.push(["Share of time", percent(point.share)]);
    rows.push(["Origin", point.origin], ...point.details);
    if (point.missing) rows.push(["Not drawn", point.missing]);
    const mark = this.svg.querySelector(`[data-point="${index}"]`) || this.svg;
    const { left, top, width, height } = mark.getBoundingClientRect();
    showTip(left + (mark === this.svg ? 0 : width / 2), top + (mark === this.svg ? 0 : height / 2),
      kernel.letter + "  " + kernel.name, rows, kernel.note);
  }

  saveSvg() {
    save(fileName(this.data.title, ".svg"), URL.createObjectURL(new Blob([new XMLSerializer().serializeToString(this.svg)], { type: "image/svg+xml" })));
  }
}
