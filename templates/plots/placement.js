// Where a text can stand without touching another: a label is a row of discs along its base line, so
// that a rotated one is as easy as a level one.
class Placement {
  constructor(area) {
    this.area = area;
    this.taken = [];    // discs nothing may touch
    this.segments = []; // lines a label should not cross
  }
  take(x, y, r) {
    this.taken.push([x, y, r]);
  }
  line(x0, y0, x1, y1, weight = 1) {
    this.segments.push([x0, y0, x1, y1, weight]);
  }
  /// The discs of a text of that width and height centred at (x, y).
  static discs(x, y, angle, width, height) {
    const r = height / 2, reach = Math.max(0, width / 2 - r);
    const count = Math.max(2, Math.ceil((2 * reach) / r) + 1);
    return Array.from({ length: count }, (_, i) => {
      const t = -reach + (2 * reach * i) / (count - 1);
      return [x + t * Math.cos(angle), y + t * Math.sin(angle), r];
    });
  }
  /// Infinite where it does not fit, else the weight of the lines it lies on.
  cost(discs) {
    const { left, right, top, bottom } = this.area;
    for (const [x, y, r] of discs) {
      if (x - r < left - 1 || x + r > right + 1 || y - r < top - 1 || y + r > bottom + 1) return Infinity;
      for (const [tx, ty, tr] of this.taken) if ((x - tx) ** 2 + (y - ty) ** 2 < (r + tr) ** 2) return Infinity;
    }
    return this.segments.reduce((sum, segment) =>
      sum + (discs.some(([x, y, r]) => distance(x, y, segment) < r) ? segment[4] : 0), 0);
  }
  /// The first of the cheapest candidates becomes taken; null when none fits. A candidate is a centre with
  /// what differs from the rest: {x, y, angle, width, height, penalty}.
  place(candidates, width, height) {
    let best = null, least = Infinity;
    for (const candidate of candidates) {
      const discs = Placement.discs(candidate.x, candidate.y, candidate.angle || 0, candidate.width || width, candidate.height || height);
      const cost = this.cost(discs) + (candidate.penalty || 0);
      if (cost < least) [best, least] = [{ ...candidate, discs }, cost];
      if (least === 0) break;
    }
    if (best) this.taken.push(...best.discs);
    return best;
  }
}

const distance = (x, y, [x0, y0, x1, y1]) => {
  const dx = x1 - x0, dy = y1 - y0, length = dx * dx + dy * dy;
  const t = length ? Math.min(1, Math.max(0, ((x - x0) * dx + (y - y0) * dy) / length)) : 0;
  return Math.hypot(x - x0 - t * dx, y - y0 - t * dy);
};
