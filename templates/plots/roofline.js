// A roofline: Chart.js has the axes, the sizes and what is under the pointer; roofs, marks, arrows and
// labels are drawn here, for their places depend on each other.
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
    this.box = make("div", { className: "plot" });
    this.canvas = make("canvas", { role: "img", ariaLabel: data.title });
    this.box.append(this.canvas);
    this.panel = make("div", { className: "panel" });
    this.legend = make("p", { className: "legend" });
    card.querySelector(".body").append(
      make("div", { className: "split" }, make("div", { className: "panel" }, this.box, this.legend), this.panel));
    card.querySelector(".tools").append(make("button", { onclick: () => this.savePng() }, "PNG"));
    buildPanel(this);
    new ResizeObserver(() => this.fit()).observe(this.box);
    this.fit();
  }

  levelColour(level) {
    return seriesColour(Math.max(0, this.data.levels.indexOf(level)));
  }
  isShown(kernel) {
    if (this.isolated !== null) return kernel === this.isolated;
    return this.order.indexOf(kernel) < this.top && this.data.kernels[kernel].name.toLowerCase().includes(this.filter);
  }
  drawn(index) {
    const point = this.data.points[index];
    return !point.missing && this.isShown(point.kernel);
  }
  radius(point) {
    const scale = this.box.clientWidth < 520 ? 0.75 : 1;
    return scale * (point.share > 0 ? Math.max(4.5, 20 * Math.sqrt(Math.min(1, point.share))) : 6.5);
  }

  /// Equal decades on both axes where the card's width allows.
  fit() {
    const { ai, tflops } = this.data.frame;
    const width = this.box.clientWidth - 64;
    const height = (width * Math.log10(tflops[1] / tflops[0])) / Math.log10(ai[1] / ai[0]) + 56;
    this.box.style.height = Math.round(Math.min(820, Math.max(380, height))) + "px";
  }

  draw() {
    if (this.chart) this.chart.destroy();
    const { frame, points } = this.data;
    this.chart = new Chart(this.canvas, {
      type: "scatter",
      data: {
        datasets: [{
          data: points.map((point) => ({ x: point.ai, y: point.tflops })),
          radius: (context) => this.radius(points[context.dataIndex] || {}),
          hitRadius: 4,
          hoverRadius: (context) => this.radius(points[context.dataIndex] || {}),
          backgroundColor: "transparent", borderColor: "transparent",
          hoverBackgroundColor: "transparent", hoverBorderColor: "transparent",
        }],
      },
      options: {
        animation: false,
        responsive: true,
        maintainAspectRatio: false,
        layout: { padding: { top: 4, right: 6 } },
        scales: {
          x: logAxis(this.data.ai_title, frame.ai),
          y: logAxis("TFLOP/s", frame.tflops),
        },
        plugins: {
          legend: { display: false },
          tooltip: { enabled: false, external: (context) => this.hover(context.tooltip) },
        },
        onClick: (event, elements) => this.isolate(elements.length ? points[elements[0].index].kernel : null),
      },
      plugins: [{ id: "roofline", afterDatasetsDraw: (chart) => this.paint(chart) }],
    });
  }
  isolate(kernel) {
    this.isolated = this.isolated === kernel ? null : kernel;
    this.refresh();
  }
  refresh() {
    const data = this.chart.data.datasets[0].data;
    this.data.points.forEach((point, i) => {
      data[i] = this.drawn(i) ? { x: point.ai, y: point.tflops } : { x: NaN, y: NaN };
    });
    refreshPanel(this);
    this.chart.update();
  }

  // ---- Painting

  paint(chart) {
    const context = chart.ctx, { x, y } = chart.scales;
    this.at = (ai, tflops) => [x.getPixelForValue(ai), y.getPixelForValue(tflops)];
    const placement = new Placement(chart.chartArea);
    const roofs = this.data.roofs.filter((_, i) => !this.hiddenRoofs.has(i));
    context.save();
    for (const roof of roofs) this.paintRoof(context, roof, placement);
    const marks = this.data.points.flatMap((point, i) => (this.drawn(i) ? [[point, ...this.at(point.ai, point.tflops)]] : []));
    for (const [point, px, py] of marks) placement.take(px, py, this.radius(point) + 2);
    this.paintLevels(context);
    for (const [point, px, py] of marks) this.paintHeadroom(context, point, px, py);
    this.arrowLabels = [];
    for (const arrow of this.data.arrows) this.paintArrow(context, arrow, placement);
    // Large marks first, so that small ones stay visible on them.
    for (const [point, px, py] of [...marks].sort((a, b) => this.radius(b[0]) - this.radius(a[0])))
      drawMark(context, px, py, this.radius(point), point.kernel, point.fill, this.levelColour(point.level));
    this.labelRoofs(context, roofs, placement);
    this.labelMarks(context, placement);
    for (const label of this.arrowLabels) this.labelArrow(context, label, placement);
    const ridges = new Map(roofs.filter((roof) => roof.ridge > 0).map((roof) => [roof.ridge_text, roof]));
    for (const roof of ridges.values()) this.labelRidge(context, roof, placement, chart.chartArea);
    context.restore();
  }

  paintRoof(context, roof, placement) {
    const [x0, y0] = this.at(...roof.from), [x1, y1] = this.at(...roof.to);
    const colour = roof.slope ? this.levelColour(roof.level) : theme("ink");
    // A label on a slope would seem to be that slope's; one on a ceiling is only less easy to read.
    placement.line(x0, y0, x1, y1, roof.slope ? 3 : 1);
    context.strokeStyle = colour;
    context.lineWidth = roof.slope ? 2 : 1.6;
    context.setLineDash(roof.solid ? [] : [7, 4]);
    line(context, x0, y0, x1, y1);
    if (roof.slope) return;
    context.lineWidth = 1;
    context.globalAlpha = 0.45;
    if (roof.reach) {
      // Where only the faster levels of memory lead.
      context.setLineDash([1.5, 4]);
      line(context, this.at(roof.reach, roof.to[1])[0], y0, x0, y0);
    }
    if (roof.ridge > 0) {
      context.setLineDash([1.5, 5]);
      context.strokeStyle = theme("faint");
      line(context, x0, y0, x0, this.at(1, this.data.frame.tflops[0])[1]);
    }
    context.globalAlpha = 1;
    if (roof.ridge > 0) {
      context.fillStyle = colour;
      context.beginPath();
      context.arc(x0, y0, 2.6, 0, 7);
      context.fill();
    }
  }

  /// The levels of one kernel hang together.
  paintLevels(context) {
    context.strokeStyle = theme("faint");
    context.lineWidth = 1;
    context.setLineDash([]);
    for (const kernel of this.data.kernels) {
      const places = kernel.points.filter((i) => this.drawn(i)).map((i) => this.at(this.data.points[i].ai, this.data.points[i].tflops));
      places.sort((a, b) => a[0] - b[0]);
      for (let i = 1; i < places.length; ++i) line(context, ...places[i - 1], ...places[i]);
    }
  }

  paintHeadroom(context, point, px, py) {
    if (!(point.roof_tflops > point.tflops * 1.02)) return;
    const end = this.at(point.ai, point.roof_tflops)[1], start = py - this.radius(point) - 2;
    if (start - end < 8) return;
    context.strokeStyle = context.fillStyle = this.levelColour(point.level);
    context.globalAlpha = 0.75;
    context.lineWidth = 1.3;
    context.setLineDash([2, 3]);
    line(context, px, start, px, end + 6);
    head(context, px, end, -Math.PI / 2, 6);
    context.globalAlpha = 1;
  }

  paintArrow(context, { from, to, label }, placement) {
    if (!this.drawn(from) || !this.drawn(to)) return;
    const [a, b] = [this.data.points[from], this.data.points[to]];
    const [x0, y0] = this.at(a.ai, a.tflops), [x1, y1] = this.at(b.ai, b.tflops);
    const length = Math.hypot(x1 - x0, y1 - y0);
    if (length < 24) return;
    // Bent below the straight line, away from the roofs.
    const bend = Math.min(46, 0.18 * length);
    const cx = (x0 + x1) / 2 + ((y0 - y1) / length) * bend * (x1 >= x0 ? -1 : 1);
    const cy = (y0 + y1) / 2 + (Math.abs(x1 - x0) / length) * bend;
    const at = (t) => [(1 - t) ** 2 * x0 + 2 * t * (1 - t) * cx + t * t * x1, (1 - t) ** 2 * y0 + 2 * t * (1 - t) * cy + t * t * y1];
    const path = Array.from({ length: 41 }, (_, i) => at(i / 40)).filter(
      ([px, py]) => Math.hypot(px - x0, py - y0) > this.radius(a) + 3 && Math.hypot(px - x1, py - y1) > this.radius(b) + 8);
    if (path.length < 2) return;
    const colour = theme("soft");
    context.strokeStyle = context.fillStyle = colour;
    context.lineWidth = 1.7;
    context.setLineDash([]);
    context.beginPath();
    path.forEach((point, i) => (i ? context.lineTo(...point) : context.moveTo(...point)));
    context.stroke();
    const angle = Math.atan2(y1 - path.at(-1)[1], x1 - path.at(-1)[0]);
    head(context, x1 - Math.cos(angle) * (this.radius(b) + 2), y1 - Math.sin(angle) * (this.radius(b) + 2), angle, 8);
    for (let i = 1; i < path.length; ++i) placement.line(...path[i - 1], ...path[i], 0.2);
    placement.take(x1 - Math.cos(angle) * (this.radius(b) + 6), y1 - Math.sin(angle) * (this.radius(b) + 6), 5);
    if (label) this.arrowLabels.push({ label, path });
  }

  // ---- Labels

  width(context, text, font) {
    context.font = font + " " + kFont;
    return context.measureText(text).width;
  }

  /// A letter beside the rightmost mark of each kernel; on the mark when it is large.
  labelMarks(context, placement) {
    const font = "600 12px";
    // Beyond some number letters say nothing and cost much; the hover still does.
    this.order.slice(0, 150).map((index) => this.data.kernels[index]).forEach((kernel) => {
      const places = kernel.points.filter((i) => this.drawn(i)).map((i) => [this.data.points[i], ...this.at(this.data.points[i].ai, this.data.points[i].tflops)]);
      if (!places.length) return;
      const width = this.width(context, kernel.letter, font) + 4;
      const candidates = places.sort((a, b) => b[1] - a[1]).flatMap(([point, px, py]) => {
        const r = this.radius(point) + 3 + width / 2;
        return [0.6, -0.6, 0, 2.5, -2.5, Math.PI, 1.57, -1.57].flatMap((angle) =>
          [r + 1, r + 7].map((reach) => ({ x: px + reach * Math.cos(angle), y: py + reach * Math.sin(angle) })));
      });
      const spot = placement.place(candidates, width, 13);
      if (spot) drawText(context, kernel.letter, spot.x, spot.y, { align: "center", font });
    });
  }

  /// Name and value along the line: of a ceiling at the right, of a slope in its middle. Slopes of one
  /// level that nearly touch (datasheet and measured) share a label on the faster one.
  labelRoofs(context, roofs, placement) {
    const slopes = roofs.filter((roof) => roof.slope).sort((a, b) => b.to[1] / b.to[0] - a.to[1] / a.to[0]);
    const apart = (a, b) => Math.abs(this.at(a.from[0], a.from[1])[0] - this.at((a.from[1] / b.from[1]) * b.from[0], 1)[0]);
    for (const roof of roofs.filter((one) => !one.slope).reverse()) this.labelRoof(context, [roof], placement);
    while (slopes.length) {
      const first = slopes.shift();
      const near = slopes.filter((other) => other.level === first.level && apart(first, other) < 24);
      near.forEach((other) => slopes.splice(slopes.indexOf(other), 1));
      this.labelRoof(context, [first, ...near], placement);
    }
  }
  labelRoof(context, [roof, ...near], placement) {
    const [x0, y0] = this.at(...roof.from), [x1, y1] = this.at(...roof.to);
    const length = Math.hypot(x1 - x0, y1 - y0), angle = Math.atan2(y1 - y0, x1 - x0);
    const colour = roof.slope ? this.levelColour(roof.level) : theme("ink");
    const spread = Array.from({ length: 49 }, (_, i) => i / 48);
    const order = roof.slope ? spread.sort((a, b) => Math.abs(a - 0.45) - Math.abs(b - 0.45)) : spread.map((t) => 1 - t);
    const origins = new Set([roof, ...near].map((one) => one.origin)).size > 1;
    const full = [roof, ...near].map((one, i) => (i && origins ? one.origin + " " : "") + one.value).join(", ");
    const short = [roof, ...near].map((one) => one.value).join(" / ").replace(/ TFLOP\/s/g, "");
    const texts = [[roof.name + "  " + full, "12px"], [roof.name + " " + full, "10.5px"], [roof.name + " " + short, "10.5px"]];
    const candidates = texts.flatMap(([text, font], penalty) => {
      const width = this.width(context, text, font) + 6, height = parseFloat(font) + 2, room = length - width;
      return order.flatMap((t) =>
        // The second distance passes over marks that stand on the line.
        (near.length ? [[-1, 0], [-1, 13]] : [[-1, 0], [1, 0], [-1, 13], [1, 13]]).map(([side, clear]) => {
          // A text longer than its ceiling ends at the ceiling's end.
          const along = room > 0 ? width / 2 + t * room : length - width / 2;
          const away = side * (height / 2 + 3 + clear);
          return { x: x0 + Math.cos(angle) * along - Math.sin(angle) * away, y: y0 + Math.sin(angle) * along + Math.cos(angle) * away,
            angle, text, font, width, height, penalty: penalty + (clear ? 0.5 : 0) };
        }));
    });
    const spot = placement.place(candidates);
    if (spot) drawText(context, spot.text, spot.x, spot.y, { angle, colour, align: "center", font: spot.font });
  }

  labelArrow(context, { label, path }, placement) {
    const font = "italic 11.5px", width = this.width(context, label, font) + 4;
    const candidates = [0.5, 0.4, 0.6, 0.3, 0.7, 0.2, 0.8].flatMap((t) => {
      const [px, py] = path[Math.floor(t * (path.length - 1))];
      return [16, 26, 38, -16, -26].flatMap((dy) => [{ x: px, y: py + dy }, { x: px + width / 2 + 10, y: py + dy / 2 }, { x: px - width / 2 - 10, y: py + dy / 2 }]);
    });
    const spot = placement.place(candidates, width, 14);
    if (spot) drawText(context, label, spot.x, spot.y, { align: "center", colour: theme("soft"), font });
  }

  labelRidge(context, roof, placement, area) {
    const x = this.at(...roof.from)[0], font = "10.5px";
    for (const text of ["ridge " + roof.ridge_text, roof.ridge_text]) {
      const width = this.width(context, text, font) + 8;
      const spot = placement.place([9, 22].flatMap((dy) => [{ x, y: area.bottom - dy }]), width, 12);
      if (spot) return drawText(context, text, spot.x, spot.y, { align: "center", colour: theme("faint"), font });
    }
  }

  // ---- Hover and export

  hover(tooltip) {
    if (!tooltip.opacity || !tooltip.dataPoints || !tooltip.dataPoints.length) return hideTip();
    this.showTip(tooltip.dataPoints[0].dataIndex);
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
    const [x, y] = point.missing ? [0, 0] : this.at(point.ai, point.tflops);
    const frame = this.canvas.getBoundingClientRect();
    showTip(frame.left + x, frame.top + y, kernel.letter + "  " + kernel.name, rows, kernel.note);
  }

  /// The plot with the names of its letters below, for a letter alone says nothing.
  savePng() {
    const ratio = this.canvas.width / this.canvas.clientWidth, row = 19, pad = 14;
    const shown = this.data.kernels.map((kernel, i) => [kernel, i]).filter(([, i]) => this.isShown(i));
    const columns = Math.max(1, Math.floor(this.canvas.clientWidth / 420));
    const rows = Math.ceil(shown.length / columns), top = 34;
    const out = make("canvas", { width: this.canvas.width + 2 * pad * ratio,
      height: this.canvas.height + (rows * row + top + 2 * pad) * ratio });
    const context = out.getContext("2d");
    context.fillStyle = theme("card");
    context.fillRect(0, 0, out.width, out.height);
    context.drawImage(this.canvas, pad * ratio, top * ratio);
    context.scale(ratio, ratio);
    drawText(context, this.data.title, pad, top / 2 + 2, { font: "600 15px" });
    shown.forEach(([kernel, i], n) => {
      const x = pad + ((n % columns) * this.canvas.clientWidth) / columns;
      const y = top + this.canvas.clientHeight + pad + Math.floor(n / columns) * row;
      const point = this.data.points[kernel.points[0]];
      drawMark(context, x + 8, y, 6, i, point.fill, this.levelColour(point.level));
      drawText(context, kernel.letter + "  " + kernel.name, x + 22, y, {});
    });
    save(fileName(this.data.title, ".png"), out.toDataURL("image/png"));
  }
}

const line = (context, x0, y0, x1, y1) => {
  context.beginPath();
  context.moveTo(x0, y0);
  context.lineTo(x1, y1);
  context.stroke();
};

const head = (context, x, y, angle, size) => {
  context.save();
  context.translate(x, y);
  context.rotate(angle);
  context.setLineDash([]);
  context.beginPath();
  context.moveTo(0, 0);
  context.lineTo(-size, -size * 0.42);
  context.lineTo(-size, size * 0.42);
  context.closePath();
  context.fill();
  context.restore();
};
