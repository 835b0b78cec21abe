// The copy, computed here: rows become inputs as in Python, and inputs probabilities. Nothing leaves the page.

// The arrays of a model, one after the other in a deflated stream.
async function unpacked(text, layout) {
  const packed = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const bytes = await new Response(stream).arrayBuffer();
  const types = { u1: Uint8Array, i1: Int8Array, u2: Uint16Array, i2: Int16Array, i4: Int32Array, f4: Float32Array, f8: Float64Array };
  const found = {};
  let at = 0;
  for (const { name, type, n } of layout) {
    const end = at + n * types[type].BYTES_PER_ELEMENT;
    found[name] = new types[type](bytes.slice(at, end));
    at = end;
  }
  return found;
}

// A row has a number for every column: NaN is a gap, a level its position, -1 a level that the space does not know.
function encoder(about, inputs) {
  const few = new Set(about.ordered);
  const absent = new Set(about.absent);
  return (row) => {
    const x = new Float32Array(inputs);
    let at = about.numbers.length;
    about.numbers.forEach((j, k) => {
      const there = few.has(k) ? row[j] >= 0 : row[j] === row[j];
      const scaled = (row[j] - about.center[k]) / about.scale[k];
      x[k] = absent.has(k) && !there ? 0 : Math.min(Math.max(scaled, -about.far), about.far);
    });
    for (const [j, count] of about.levels) {
      if (row[j] >= 0) x[at + row[j]] = 1;
      at += count;
    }
    for (const [j, order, middles] of about.nearest) {
      if (row[j] === row[j]) x[at + order[middles.filter((middle) => row[j] > middle).length]] = 1;
      at += order.length;
    }
    for (const j of about.gaps) x[at++] = row[j] === row[j] ? 0 : 1;
    return x;
  };
}

function softmax(scores) {
  const most = Math.max(...scores);
  const raised = scores.map((score) => Math.exp(score - most));
  const sum = raised.reduce((a, b) => a + b, 0);
  return raised.map((one) => one / sum);
}

// Layers of weights and biases in one vector; inputs may be followed by how far each is through its pieces.
function network(about, { theta, column, low, high }, inputs, classes) {
  const pieces = column ? Array.from(column, (j, i) => [j, ...line(low[i], high[i])]) : [];
  const widths = [inputs + pieces.length, ...about.hidden, classes];
  const bend = about.activation === "mish" ? mish : (sum) => Math.max(sum, 0);
  return (x) => {
    let from = new Float32Array(widths[0]);
    from.set(x);
    pieces.forEach(([j, slope, shift], i) => (from[inputs + i] = Math.min(Math.max(x[j] * slope + shift, 0), 1)));
    let at = 0;
    for (let layer = 1; layer < widths.length; layer++) {
      const [rows, wide] = [widths[layer - 1], widths[layer]];
      const sums = Float64Array.from(theta.subarray(at + rows * wide, at + rows * wide + wide));
      for (let i = 0; i < rows; i++)
        if (from[i] !== 0) for (let k = 0; k < wide; k++) sums[k] += from[i] * theta[at + i * wide + k];
      if (layer === widths.length - 1) return softmax(Array.from(sums));
      at += (rows + 1) * wide;
      from = Float32Array.from(sums, bend);
    }
  };
}

function line(low, high) {
  const slope = Math.fround(1 / Math.fround(high - low));
  const kept = slope < 1.1754943508222875e-38 ? 0 : slope;
  return [kept, Math.fround(-low * kept)];
}

function mish(sum) {
  const t = Math.exp(-Math.abs(sum));
  const above = sum > 0 ? 1 + 2 * t : t * t + 2 * t;
  return (sum * above) / (above + (sum > 0 ? 2 * t * t : 2));
}

function linear(about, { weights, biases }, inputs, classes) {
  return (x) => {
    const scores = new Array(classes).fill(0);
    for (let i = 0; i < inputs; i++) for (let k = 0; k < classes; k++) scores[k] += x[i] * weights[i * classes + k];
    return softmax(scores.map((score, k) => score + biases[k]));
  };
}

function radial(about, { centres, weights, offset }, inputs, classes) {
  return (x) => {
    const scores = Array.from(offset);
    for (let c = 0; c * inputs < centres.length; c++) {
      let far = 0;
      for (let i = 0; i < inputs; i++) far += (centres[c * inputs + i] - x[i]) ** 2;
      const near = Math.exp(-about.gamma * far);
      for (let k = 0; k < classes; k++) scores[k] += near * weights[c * classes + k];
    }
    return softmax(scores.map((score) => about.sharpness * score));
  };
}

// A row goes left where its input is at most the threshold; children are so many nodes further on.
function trees(about, { feature, threshold, left, right, values, roots, outputs, base }) {
  const wide = values.length / feature.length;
  return (x) => {
    const scores = Array.from(base);
    roots.forEach((root, t) => {
      let node = root;
      while (left[node]) node += x[feature[node]] <= threshold[node] ? left[node] : right[node];
      for (let k = 0; k < wide; k++) scores[outputs[t] + k] += values[node * wide + k];
    });
    if (about.link === "softmax") return softmax(scores);
    const sum = scores.reduce((a, b) => a + b, 0);
    return scores.map((score) => score / sum);
  };
}

// The product of what members say, each to its power; none may rule a class out.
function blend(about, arrays, inputs, classes) {
  const members = about.members.map((said, k) => {
    const own = Object.entries(arrays).filter(([name]) => name.startsWith(`${k}.`));
    const parts = Object.fromEntries(own.map(([name, part]) => [name.slice(name.indexOf(".") + 1), part]));
    return KINDS[said.kind](said, parts, inputs, classes);
  });
  return (x) => {
    const scores = new Array(classes).fill(0);
    members.forEach((member, m) =>
      member(x).forEach((p, k) => (scores[k] += arrays.powers[m] * Math.log(Math.max(p, about.floor)))));
    return softmax(scores);
  };
}

const KINDS = { mlp: network, linear, radial, trees, blend };

// From a row to a probability for every class.
async function scorer(about, text) {
  const arrays = await unpacked(text, about.arrays);
  const classes = about.classes.length;
  const encode = encoder(about.encoding, about.inputs);
  const answer = KINDS[about.model.kind](about.model, arrays, about.inputs, classes);
  return (row) => answer(encode(row));
}
