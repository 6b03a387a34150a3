// Draws on a canvas what the server computed: curves and maps, rows, modes, paths. Colours are those of
// Okabe and Ito, which colour-blind readers can tell apart.

const COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"];
const BLUE = COLOURS[0], ORANGE = COLOURS[1], INK = "#1c1f23", SOFT = "#5a6068";
const LEVELS = [0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.95];  // shares of the largest density
const MARGIN = { left: 58, right: 12, top: 12, bottom: 44 };
const APART = 7;  // pixels between the dots of a path, at least
const NUMBERED = 20;  // up to this many modes have numbers

export class Plot {
  constructor(canvas) {
    this.canvas = canvas;
    this.scene = null;
    new ResizeObserver(() => this.draw()).observe(canvas);
  }

  show(scene) {
    this.scene = scene;
    this.draw();
  }

  // The data coordinates of a mouse event; null outside of the axes.
  locate(event) {
    const at = this.canvas.getBoundingClientRect(), { low, high } = this.range;
    const x = (event.clientX - at.left - MARGIN.left) / this.box.width;
    const y = 1 - (event.clientY - at.top - MARGIN.top) / this.box.height;
    if (Math.min(x, y) < 0 || Math.max(x, y) > 1) return null;
    return [x, y].map((t, k) => low[k] + t * (high[k] - low[k])).slice(0, this.scene.low.length);
  }

  draw() {
    const scene = this.scene, ratio = window.devicePixelRatio || 1;
    const { clientWidth: width, clientHeight: height } = this.canvas;
    if (!scene || !width) return;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    const ctx = this.ctx = this.canvas.getContext("2d");
    ctx.scale(ratio, ratio);
    this.box = { width: width - MARGIN.left - MARGIN.right, height: height - MARGIN.top - MARGIN.bottom };
    this.range = rangeOf(scene);
    const flat = scene.low.length === 1;
    ctx.save();
    ctx.beginPath();
    ctx.rect(MARGIN.left, MARGIN.top, this.box.width, this.box.height);
    ctx.clip();
    if (scene.values) flat ? this.witnessCurve() : this.witnessMap();
    else flat ? this.densityCurve() : this.densityMap();
    ctx.restore();
    this.axes();
    if (!scene.values) {
      this.marks();
      this.modes();
    }
  }

  // Pixels of data coordinates.
  at(x, y) {
    const { low, high } = this.range;
    return [
      MARGIN.left + (x - low[0]) / (high[0] - low[0]) * this.box.width,
      MARGIN.top + (1 - (y - low[1]) / (high[1] - low[1])) * this.box.height,
    ];
  }

  // A picture of the plane: `colour(node, u, v)` is the colour at the shares u, v of a cell of the grid.
  paint(size, colour) {
    const w = Math.round(this.box.width), h = Math.round(this.box.height);
    const sheet = document.createElement("canvas");
    [sheet.width, sheet.height] = [w, h];
    const image = new ImageData(w, h), data = new Uint32Array(image.data.buffer);
    const place = (t, n) => Math.min(Math.max((t + 0.5) / n * (size - 1), 0), size - 1 - 1e-9);
    for (let y = 0; y < h; y++) {
      const b = place(h - 1 - y, h), j = Math.floor(b);
      for (let x = 0; x < w; x++) {
        const a = place(x, w), i = Math.floor(a);
        data[y * w + x] = colour(i * size + j, a - i, b - j);
      }
    }
    sheet.getContext("2d").putImageData(image, 0, 0);
    this.ctx.drawImage(sheet, MARGIN.left, MARGIN.top, this.box.width, this.box.height);
  }

  densityMap() {
    const { density, basins, size, colours, samples } = this.scene;
    const top = density.reduce((a, b) => Math.max(a, b), 0) || 1;
    const shades = colours.map((c) => LEVELS.concat(1).map((_, k) => packed(tint(c, 0.07 + 0.09 * k))));
    const white = packed([255, 255, 255]);
    this.paint(size, (n, u, v) => {
      const value = between(density, n, size, u, v) / top;
      let level = 0;
      while (level < LEVELS.length && value >= LEVELS[level]) level++;
      const basin = nearestBasin(basins, n, size, u, v);
      return basin < 0 ? white : shades[basin][level];
    });
    this.rows(samples[0].points, INK, 0.5);
  }

  witnessMap() {
    const { values, size, samples } = this.scene;
    const top = values.reduce((a, b) => Math.max(a, Math.abs(b)), 0) || 1;
    const shades = [BLUE, ORANGE].map((c) => [...Array(11).keys()].map((k) => packed(tint(c, 0.075 * k))));
    this.paint(size, (n, u, v) => {
      const value = between(values, n, size, u, v) / top;
      return shades[value > 0 ? 0 : 1][Math.floor(10.5 * Math.abs(value))];
    });
    this.rows(samples[0].points, BLUE, 0.75);
    this.rows(samples[1].points, ORANGE, 0.75);
  }

  rows(points, colour, alpha) {
    const ctx = this.ctx, count = this.scene.samples[0].points.length;
    const r = Math.min(Math.max(45 / Math.sqrt(count), 1), 2.6);
    ctx.fillStyle = colour;
    ctx.globalAlpha = alpha;
    for (const [x, y] of points) {
      const [a, b] = this.at(x, y);
      ctx.beginPath();
      ctx.arc(a, b, r, 0, 7);
      ctx.fill();
    }
    ctx.globalAlpha = 1;
  }

  curve(values, from = 0, to = values.length - 1) {
    const { low, high } = this.scene, step = (high[0] - low[0]) / (values.length - 1);
    for (let i = from; i <= to; i++) this.ctx.lineTo(...this.at(low[0] + i * step, values[i]));
  }

  densityCurve() {
    const { density, basins, low, high, colours, samples } = this.scene, ctx = this.ctx;
    const step = (high[0] - low[0]) / (density.length - 1);
    for (let from = 0, to = 0; from < density.length; from = to) {
      while (to < density.length && basins[to] === basins[from]) to++;
      ctx.beginPath();
      ctx.moveTo(...this.at(low[0] + from * step, 0));
      this.curve(density, from, Math.min(to, density.length - 1));
      ctx.lineTo(...this.at(low[0] + Math.min(to, density.length - 1) * step, 0));
      ctx.fillStyle = basins[from] < 0 ? "#fff" : `rgb(${tint(colours[basins[from]], 0.45)})`;
      ctx.fill();
    }
    ctx.beginPath();
    this.curve(density);
    ctx.strokeStyle = INK;
    ctx.lineWidth = 1.5;
    ctx.stroke();
    this.ticks(samples[0].points, INK, 0, -1);
  }

  witnessCurve() {
    const { values, low, high, samples } = this.scene, ctx = this.ctx;
    for (const [colour, sign] of [[BLUE, 1], [ORANGE, -1]]) {
      ctx.beginPath();
      ctx.moveTo(...this.at(low[0], 0));
      this.curve(values.map((v) => Math.max(sign * v, 0) * sign));
      ctx.lineTo(...this.at(high[0], 0));
      ctx.fillStyle = `rgb(${tint(colour, 0.45)})`;
      ctx.fill();
    }
    ctx.beginPath();
    this.curve(values);
    ctx.strokeStyle = INK;
    ctx.lineWidth = 1.5;
    ctx.stroke();
    this.ticks(samples[0].points, BLUE, this.range.high[1], -1);
    this.ticks(samples[1].points, ORANGE, this.range.low[1], 1);
  }

  // A tick for each row, 12 pixels long; `side` is -1 for down.
  ticks(points, colour, y, side) {
    const ctx = this.ctx;
    ctx.beginPath();
    for (const [x] of points) {
      const [a, b] = this.at(x, y);
      ctx.moveTo(a, b - 3 * side);
      ctx.lineTo(a, b - 12 * side);
    }
    ctx.strokeStyle = colour;
    ctx.globalAlpha = Math.min(1, 0.15 + 40 / points.length);
    ctx.lineWidth = 1;
    ctx.stroke();
    ctx.globalAlpha = 1;
  }

  axes() {
    const ctx = this.ctx, { low, high } = this.range, names = this.scene.names;
    const [left, bottom] = [MARGIN.left, MARGIN.top + this.box.height];
    ctx.strokeStyle = SOFT;
    ctx.lineWidth = 1;
    ctx.beginPath();
    ctx.moveTo(left, MARGIN.top);
    ctx.lineTo(left, bottom);
    ctx.lineTo(left + this.box.width, bottom);
    ctx.fillStyle = INK;
    ctx.font = "12px system-ui, 'DejaVu Sans', sans-serif";
    ctx.textAlign = "center";
    ctx.textBaseline = "top";
    for (const [value, text] of niceTicks(low[0], high[0], this.box.width / 90)) {
      const [x] = this.at(value, low[1]);
      ctx.moveTo(x, bottom);
      ctx.lineTo(x, bottom + 4);
      ctx.fillText(text, x, bottom + 7);
    }
    ctx.textAlign = "right";
    ctx.textBaseline = "middle";
    const least = this.scene.low.length === 1 && !this.scene.values ? 0 : low[1];
    for (const [value, text] of niceTicks(least, high[1], this.box.height / 60)) {
      const [, y] = this.at(low[0], value);
      ctx.moveTo(left - 4, y);
      ctx.lineTo(left, y);
      ctx.fillText(text, left - 7, y, left - 22);
    }
    ctx.stroke();
    ctx.fillStyle = SOFT;
    ctx.textAlign = "center";
    ctx.textBaseline = "bottom";
    ctx.fillText(names[0], left + this.box.width / 2, bottom + MARGIN.bottom - 2, this.box.width);
    ctx.save();
    ctx.translate(13, MARGIN.top + this.box.height / 2);
    ctx.rotate(-Math.PI / 2);
    ctx.textBaseline = "middle";
    ctx.fillText(names[1], 0, 0, this.box.height);
    ctx.restore();
  }

  modes() {
    const ctx = this.ctx, { modes, heights, colours } = this.scene, few = modes.length <= NUMBERED;
    modes.forEach((mode, k) => {
      const [x, y] = this.at(mode[0], mode.length > 1 ? mode[1] : heights[k]);
      if (mode.length === 1 && few) {
        ctx.beginPath();
        ctx.moveTo(...this.at(mode[0], 0));
        ctx.lineTo(x, y);
        ctx.strokeStyle = colours[k];
        ctx.lineWidth = 2;
        ctx.stroke();
      }
      disc(ctx, x, y, few ? 9 : 3.5, "#fff", INK);
      if (!few) return;
      ctx.fillStyle = INK;
      ctx.font = "11px system-ui, 'DejaVu Sans', sans-serif";
      ctx.textAlign = "center";
      ctx.textBaseline = "middle";
      ctx.fillText(String(k + 1), x, y + 0.5);
    });
  }

  // The chosen point, its ascent and its pre-image.
  marks() {
    const { point, path, preimage } = this.scene, ctx = this.ctx;
    if (!point) return;
    const flat = point.length === 1;
    if (path) {
      const pixels = path.points.map((p, i) => this.at(p[0], flat ? path.heights[i] : p[1]));
      for (const [colour, width] of [["#fff", 5], [INK, 2]]) {
        ctx.beginPath();
        pixels.forEach((p) => ctx.lineTo(...p));
        ctx.strokeStyle = colour;
        ctx.lineWidth = width;
        ctx.lineJoin = "round";
        ctx.stroke();
      }
      let [a, b] = [-Infinity, 0];
      for (const [x, y] of pixels) {
        if (Math.hypot(x - a, y - b) < APART) continue;
        disc(ctx, x, y, 2, INK, INK);
        [a, b] = [x, y];
      }
      disc(ctx, ...pixels[0], 5, INK, "#fff");
    }
    if (!preimage) return;
    const [x, y] = this.at(preimage.point[0], flat ? preimage.height : preimage.point[1]);
    ctx.beginPath();
    for (const [a, b] of [[0, -8], [8, 0], [0, 8], [-8, 0]]) ctx.lineTo(x + a, y + b);
    ctx.closePath();
    ctx.fillStyle = "#F0E442";
    ctx.strokeStyle = INK;
    ctx.lineWidth = 1.5;
    ctx.fill();
    ctx.stroke();
  }
}

// Colours of modes: that of the mode near the same place before, if there was one, and not that of an
// adjacent basin.
export function chooseColours(next, before, span) {
  const { modes, basins, size } = next, touching = modes.map(() => new Set());
  const touch = (a, b) => {
    if (a !== b && a >= 0 && b >= 0) { touching[a].add(b); touching[b].add(a); }
  };
  const steps = modes[0]?.length === 1 ? [1] : [1, size];
  for (const step of steps) {
    for (let n = 0; n + step < basins.length; n++) touch(basins[n], basins[n + step]);
  }
  const chosen = [], uses = new Map(COLOURS.map((c) => [c, 0]));
  modes.forEach((mode, k) => {
    const taken = new Set([...touching[k]].map((j) => chosen[j]));
    const free = COLOURS.filter((c) => !taken.has(c));
    const far = (old) => Math.hypot(...old.map((x, j) => (x - mode[j]) / span[j]));
    const near = (before?.modes ?? []).map((old, j) => [far(old), before.colours[j]]).sort((a, b) => a[0] - b[0])[0];
    const kept = near && near[0] < 0.1 && free.includes(near[1]) ? near[1] : null;
    chosen[k] = kept ?? (free.length ? free : COLOURS).reduce((a, b) => (uses.get(b) < uses.get(a) ? b : a));
    uses.set(chosen[k], uses.get(chosen[k]) + 1);
  });
  return chosen;
}

function rangeOf({ low, high, density, values }) {
  if (low.length === 2) return { low, high };
  const top = (values ?? density).reduce((a, b) => Math.max(a, Math.abs(b)), 0) || 1;
  return { low: [low[0], values ? -1.25 * top : -0.09 * top], high: [high[0], (values ? 1.25 : 1.12) * top] };
}

function between(values, n, size, u, v) {
  return (1 - u) * ((1 - v) * values[n] + v * values[n + 1])
    + u * ((1 - v) * values[n + size] + v * values[n + size + 1]);
}

// The basin with the largest weight among the sixteen nodes around a place, by cubic splines, which draw
// smooth borders. White (-1) where two have nearly the same.
const shares = new Float64Array(1 << 16);
function nearestBasin(basins, n, size, u, v) {
  const a = basins[n];
  if (a === basins[n + 1] && a === basins[n + size] && a === basins[n + size + 1]) return a;
  const i = Math.floor(n / size), j = n % size, across = spline(u), up = spline(v), seen = [];
  for (let s = 0; s < 4; s++) {
    for (let t = 0; t < 4; t++) {
      const basin = basins[clamp(i + s - 1, size) * size + clamp(j + t - 1, size)];
      if (!seen.includes(basin)) seen.push(basin);
      shares[basin + 1] += across[s] * up[t];
    }
  }
  seen.sort((b, c) => shares[c + 1] - shares[b + 1]);
  const border = shares[seen[0] + 1] - (shares[seen[1] + 1] || 0) < 0.1;
  for (const basin of seen) shares[basin + 1] = 0;
  return border ? -1 : seen[0];
}

const clamp = (i, size) => Math.min(Math.max(i, 0), size - 1);
const spline = (t) => [(1 - t) ** 3 / 6, (3 * t ** 3 - 6 * t ** 2 + 4) / 6, (1 + 3 * t + 3 * t ** 2 - 3 * t ** 3) / 6, t ** 3 / 6];

// A mixture of a colour with white.
function tint(colour, share) {
  return [1, 3, 5].map((i) => Math.round(255 - share * (255 - parseInt(colour.slice(i, i + 2), 16))));
}

const packed = ([red, green, blue]) => 0xff000000 | blue << 16 | green << 8 | red;

function disc(ctx, x, y, r, fill, stroke) {
  ctx.beginPath();
  ctx.arc(x, y, r, 0, 7);
  ctx.fillStyle = fill;
  ctx.fill();
  ctx.strokeStyle = stroke;
  ctx.lineWidth = 1.3;
  ctx.stroke();
}

// Multiples of 1, 2 or 5 times a power of ten, as numbers and as text.
function niceTicks(low, high, count) {
  const rough = (high - low) / Math.max(count, 2), power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough * (1 - 1e-9));
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const largest = Math.max(Math.abs(low), Math.abs(high)), ticks = [];
  // beyond 2^53, i + 1 may be i
  for (let i = Math.ceil(low / step); i * step <= high && ticks.length < 100; i++) {
    const value = i * step;
    const text = largest >= 1e10 || digits > 4
      ? value.toExponential(Math.min(20, Math.max(0, Math.round(Math.log10(largest / step)))))
      : value.toFixed(digits);
    ticks.push([value, Number(text) === 0 ? "0" : text.replace(/\.?0+e/, "e").replace("e+", "e")]);
  }
  return ticks;
}
