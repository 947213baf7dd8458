// All that comes from elsewhere is set as text, never as HTML.
const data = JSON.parse(document.getElementById('data').textContent);
const { works, pairs } = data;
const at = id => document.getElementById(id);
const make = (tag, values = {}, ...inside) => {
  const one = Object.assign(document.createElement(tag), values);
  one.append(...inside);
  return one;
};
const draw = (tag, values = {}, ...inside) => {
  const one = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(values)) one.setAttribute(name, value);
  one.append(...inside);
  return one;
};
const number = count => count.toLocaleString('en');
const tell = (value, measure) =>
  measure && data.percent ? `${Math.round(100 * value)}%` : value.toFixed(2);
const figures = pair => `copied ${tell(pair.figures[0], 0)}, alike ${tell(pair.figures[1], 1)}`;
const nameOf = work => works[work].name + (works[work].old ? ' (old)' : '');
const link = pair => `#${pair.left}-${pair.right}`;

// ---- the overview, which follows the threshold

const ROWS = 100, GROUPS = 50, EDGES = 1500, LABELS = 60;
const chosen = { measure: 0, thresholds: [...data.thresholds], sort: 0, down: true, rows: ROWS };
const threshold = () => chosen.thresholds[chosen.measure];
const listed = () => pairs.filter(pair => pair.figures[chosen.measure] >= threshold() - 1e-9);

function showBars() {
  const counts = Array(20).fill(0);
  for (const work of works)
    counts[Math.min(19, Math.floor(20 * work.highest[chosen.measure] + 1e-9))] += 1;
  const most = Math.max(...counts);
  const mark = make('hr');
  mark.style.left = `${100 * threshold()}%`;
  at('bars').replaceChildren(...counts.map((count, place) => {
    const bar = make('i', { title: `${number(count)} from ${(place / 20).toFixed(2)} on` });
    bar.style.height = `${85 * count / most}%`;
    bar.dataset.count = count || '';
    bar.classList.toggle('on', place / 20 >= threshold() - 1e-9);
    return bar;
  }), mark);
  at('bars').setAttribute('aria-label', `How many ${data.what} have another that is so `
    + `${chosen.measure ? 'alike' : 'copied'}: ${counts.join(', ')}`);
  at('scale').replaceChildren(...[0, .25, .5, .75, 1].map(value =>
    make('span', { textContent: tell(value, chosen.measure) })));
}

function joinGroups(shown) {
  const group = works.map((_, place) => place);
  const find = work => { while (group[work] !== work) work = group[work] = group[group[work]];
    return work; };
  for (const pair of shown) group[find(pair.left)] = find(pair.right);
  const found = new Map();
  for (const pair of shown) {
    const root = find(pair.left);
    if (!found.has(root)) found.set(root, { members: new Set(), pairs: [] });
    found.get(root).members.add(pair.left).add(pair.right);
    found.get(root).pairs.push(pair);
  }
  return [...found.values()].map(one => ({ ...one, members: [...one.members].sort((a, b) => a - b) }))
    .sort((one, other) => other.members.length - one.members.length);
}

function showGroups(groups) {
  const items = groups.slice(0, GROUPS).map(group => {
    const values = group.pairs.map(pair => pair.figures[chosen.measure]);
    const [low, high] = [Math.min(...values), Math.max(...values)]
      .map(value => tell(value, chosen.measure));
    const names = group.members.slice(0, 60).map(work => {
      const button = make('button', { type: 'button', textContent: nameOf(work) });
      button.dataset.name = works[work].name;
      return button;
    });
    const more = group.members.length - names.length;
    return make('li', {}, `${number(group.members.length)} ${data.what}, `
      + `${chosen.measure ? 'alike' : 'copied'} ${low === high ? low : `${low} to ${high}`}: `,
      ...names, more ? ` and ${number(more)} more` : '');
  });
  if (groups.length > GROUPS)
    items.push(make('li', {}, `and ${number(groups.length - GROUPS)} more groups`));
  at('groups').replaceChildren(...items.length ? items : [make('li', {}, 'none')]);
}

// Springs along pairs, and every two works push each other away.
function layOut(group, length) {
  const { members } = group, size = members.length;
  const place = new Map(members.map((work, index) => [work, index]));
  const points = members.map((_, index) => {
    const turn = 2 * Math.PI * index / size;
    return { x: Math.cos(turn) * size * 9, y: Math.sin(turn) * size * 9 };
  });
  const edges = group.pairs.map(pair => [points[place.get(pair.left)], points[place.get(pair.right)]]);
  const rounds = size < 3 ? 0 : size < 60 ? 200 : size < 150 ? 80 : 40;
  for (let round = 0; round < rounds; round++) {
    const heat = 20 * (1 - round / rounds);
    for (const one of points) { one.dx = -one.x * .02; one.dy = -one.y * .02; }
    for (let i = 0; i < size; i++) for (let j = i + 1; j < size; j++) {
      const x = points[i].x - points[j].x, y = points[i].y - points[j].y;
      const push = length * length / (x * x + y * y + .01);
      points[i].dx += x * push; points[i].dy += y * push;
      points[j].dx -= x * push; points[j].dy -= y * push;
    }
    for (const [one, other] of edges) {
      const x = other.x - one.x, y = other.y - one.y, pull = Math.hypot(x, y) / length;
      one.dx += x * pull; one.dy += y * pull; other.dx -= x * pull; other.dy -= y * pull;
    }
    for (const one of points) {
      const far = Math.hypot(one.dx, one.dy) || 1, step = Math.min(far, heat) / far;
      one.x += one.dx * step; one.y += one.dy * step;
    }
  }
  if (size === 2) { points[0] = { x: 0, y: 0 }; points[1] = { x: length, y: 0 }; }
  const left = Math.min(...points.map(one => one.x)), top = Math.min(...points.map(one => one.y));
  for (const one of points) { one.x -= left; one.y -= top; }
  return { ...group, place, points, width: Math.max(...points.map(one => one.x)),
    height: Math.max(...points.map(one => one.y)) };
}

function showGraph(groups, shown) {
  const count = groups.reduce((sum, group) => sum + group.members.length, 0);
  at('drawn').textContent = shown.length > EDGES
    ? `${number(shown.length)} pairs are too many to draw; choose a higher threshold.`
    : `${number(count)} of ${number(works.length)} ${data.what} have a pair from here on. `
      + 'Choose a line to see the pair, a point to see its pairs.';
  if (!count || shown.length > EDGES) return at('graph').replaceChildren();
  const labels = count <= LABELS, gap = labels ? 90 : 30;
  const room = at('graph').clientWidth || at('overview').clientWidth - 2;
  let x = gap / 2, y = 30, row = 0, width = room;
  const lines = draw('g'), nodes = draw('g');
  for (const group of groups.map(one => layOut(one, labels ? 80 : 50))) {
    if (x > gap / 2 && x + group.width + gap / 2 > room) { x = gap / 2; y += row + 50; row = 0; }
    for (const pair of group.pairs) {
      const [one, other] = [pair.left, pair.right].map(work => group.points[group.place.get(work)]);
      const ends = { x1: x + one.x, y1: y + one.y, x2: x + other.x, y2: y + other.y };
      const thick = 1 + 3 * pair.figures[chosen.measure] ** 4;
      lines.append(draw('a', { href: link(pair) }, draw('line', { ...ends, class: 'wide-target' }),
        draw('line', { ...ends, 'stroke-width': thick.toFixed(1) }),
        draw('title', {}, `${nameOf(pair.left)} and ${nameOf(pair.right)}: ${figures(pair)}`)));
    }
    group.members.forEach((work, index) => {
      const { x: across, y: down } = group.points[index];
      const name = works[work].name, short = name.length > 16 ? `${name.slice(0, 15)}…` : name;
      const node = draw('g', { 'data-name': name },
        draw('circle', { cx: x + across, cy: y + down, r: 7, class: works[work].old ? 'old' : '' }),
        draw('title', {}, nameOf(work)));
      if (labels) node.append(draw('text', { x: x + across, y: y + down + 19,
        'text-anchor': 'middle' }, short));
      nodes.append(node);
    });
    width = Math.max(width, x + group.width + gap / 2);
    x += group.width + gap; row = Math.max(row, group.height);
  }
  const svg = draw('svg', { viewBox: `0 0 ${Math.ceil(width)} ${Math.ceil(y + row + 40)}`,
    width: Math.ceil(width), height: Math.ceil(y + row + 40) }, lines, nodes);
  svg.style.maxWidth = 'none';
  at('graph').replaceChildren(svg);
}

function sorted(shown) {
  const key = chosen.sort === 'left' || chosen.sort === 'right' ? pair => nameOf(pair[chosen.sort])
    : pair => pair.figures[chosen.sort];
  const order = (a, b) => (key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : 0);
  return [...shown].sort((a, b) => (chosen.down ? order(b, a) : order(a, b)));
}

const wanted = () => {
  const text = at('filter').value.toLowerCase();
  return sorted(listed().filter(pair => [pair.left, pair.right]
    .some(work => nameOf(work).toLowerCase().includes(text))));
};

function showPairs() {
  const found = wanted();
  at('pairs').tBodies[0].replaceChildren(...found.slice(0, chosen.rows).map(pair => make('tr', {},
    make('td', {}, tell(pair.figures[0], 0)), make('td', {}, tell(pair.figures[1], 1)),
    ...[pair.left, pair.right].map(work =>
      make('td', {}, make('a', { href: link(pair), textContent: nameOf(work) }))))));
  at('more').hidden = found.length <= chosen.rows;
  at('more').textContent = `${number(found.length - chosen.rows)} more pairs`;
  for (const head of at('pairs').tHead.rows[0].cells) {
    const mine = head.firstElementChild.dataset.sort === String(chosen.sort);
    head.ariaSort = mine ? (chosen.down ? 'descending' : 'ascending') : 'none';
  }
}

function showOverview() {
  const shown = listed(), groups = joinGroups(shown), word = chosen.measure ? 'alike' : 'copied';
  const every = data.above[chosen.measure][Math.round(100 * threshold())];
  at('threshold').value = Math.round(100 * threshold());
  at('from').textContent = tell(threshold(), chosen.measure);
  at('count').textContent = `${number(every)} of ${number(data.above[0][0])} pairs are ${word} `
    + `${tell(threshold(), chosen.measure)} or more`
    + (shown.length < every ? `, of which ${number(shown.length)} are listed.` : '.');
  showBars(); showGroups(groups); showPairs();
  // A graph of hundreds takes a while; the slider must not wait for it.
  clearTimeout(later);
  later = setTimeout(() => showGraph(groups, shown), 150);
}
let later;

function seek(name) {
  at('filter').value = name; chosen.rows = ROWS; showPairs();
  at('filter').scrollIntoView({ block: 'start' });
}

// ---- a pair, which the address names

const hues = [30, 200, 120, 280, 60, 330, 165, 240];

function showSource(section, work, marks, side) {
  const box = make('div', { className: 'box', tabIndex: 0 });
  const { sources } = works[work];
  if (!sources.length) box.append(make('p', { className: 'file' }, 'Too large to be shown, or '
    + 'changed while it was read.'));
  sources.forEach((source, program) => {
    const own = marks.parts.map((part, id) => [...part[side], id])
      .filter(([where]) => where === program).sort((a, b) => a[1] - b[1]);
    const like = new Map(marks.lines.map((line, id) => [...line[side], id])
      .filter(([where]) => where === program).map(([, row, id]) => [row, id]));
    const pre = make('pre');
    let begin = 0;
    source.text.split('\n').forEach((text, row) => {
      const line = make('div', {}, make('span', { className: 'no' }, String(source.line + row)));
      const indent = text.search(/\S|$/);
      const code = make('span');
      let done = indent;
      const add = (to, id) => {
        if (to <= done) return;
        const run = text.slice(done, to);
        code.append(id === undefined ? run : mark(make('span', { className: 'part' }, run), `p${id}`));
        done = to;
      };
      for (const [, start, end, id] of own) {
        if (end <= begin || start >= begin + text.length) continue;
        add(start - begin);
        add(Math.min(end - begin, text.length), id);
      }
      add(text.length);
      if (like.has(row)) mark(Object.assign(code, { className: 'like' }), `l${like.get(row)}`);
      line.append(text.slice(0, indent), code); pre.append(line);
      begin += text.length + 1;
    });
    if (sources.length > 1 || source.name !== works[work].name)
      box.append(make('div', { className: 'file' }, source.name));
    box.append(pre);
  });
  section.replaceChildren(make('h3', {}, `${nameOf(work)} `,
    make('span', { className: 'quiet' }, works[work].language)), box);
}

function mark(one, id) {
  one.dataset.id = id;
  one.style.setProperty('--hue', hues[Number(id.slice(1)) % hues.length]);
  return one;
}

function lineOf(work, [program, start]) {
  const source = works[work].sources[program];
  return source.line + source.text.slice(0, start).split('\n').length - 1;
}

function showPair(pair) {
  const order = wanted(), place = order.indexOf(pair);
  for (const [id, other] of [['before', order[place - 1]], ['after', order[place + 1]]]) {
    at(id).hidden = place < 0 || !other;
    if (other) at(id).href = link(other);
  }
  at('names').textContent = `${nameOf(pair.left)} and ${nameOf(pair.right)}`;
  at('figures').textContent = figures(pair);
  const rows = (work, [program, start, end]) => {
    const [first, last] = [start, end].map(where => lineOf(work, [program, where]));
    return first === last ? `${first}` : `${first}–${last}`;
  };
  at('matches').replaceChildren(`Parts that match: ${number(pair.parts.length)}; lines beside `
    + `them: ${number(pair.lines.length)}. `, ...pair.parts.map(([left, right], id) =>
    mark(make('button', { type: 'button', textContent:
      `${rows(pair.left, left)} = ${rows(pair.right, right)}` }), `p${id}`)));
  for (const [side, work] of [[0, pair.left], [1, pair.right]])
    showSource(at(side ? 'right' : 'left'), work, pair, side);
  for (const one of document.querySelectorAll('pre [data-id]'))
    if (!one.closest('section').querySelector(`[data-id=${one.dataset.id}][tabindex]`))
      one.tabIndex = 0;
}

function route() {
  const pair = pairs.find(one => link(one) === location.hash);
  at('overview').hidden = !!pair; at('pair').hidden = !pair;
  if (pair) { showPair(pair); scrollTo(0, 0); at('names').focus({ preventScroll: true }); }
}

const partners = one => document.querySelectorAll(`#pair [data-id=${one.dataset.id}]`);
let kept = null;
function light(one) {
  for (const other of document.querySelectorAll('#pair .on')) other.classList.remove('on');
  if (one) for (const other of partners(one)) other.classList.add('on');
}
function follow(one) {
  kept = one; light(one);
  const here = one.closest('section');
  for (const side of [at('left'), at('right')]) {
    const other = side !== here && side.querySelector(`[data-id=${one.dataset.id}]`);
    if (!other) continue;
    const box = other.closest('.box'), near = here && here.getBoundingClientRect().top ===
      side.getBoundingClientRect().top;
    const top = other.getBoundingClientRect().top;
    // Beside each other, both stand at the same height; below each other, at the top.
    const goal = near ? here.querySelector(`[data-id=${one.dataset.id}]`).getBoundingClientRect().top
      : box.getBoundingClientRect().top + 30;
    box.scrollTop += top - goal;
  }
}

if (pairs.length) {
  at('controls').addEventListener('input', event => {
    if (event.target.name === 'measure') {
      chosen.measure = Number(event.target.value); chosen.sort = chosen.measure; chosen.down = true;
    } else chosen.thresholds[chosen.measure] = event.target.value / 100;
    chosen.rows = ROWS; showOverview();
  });
  at('filter').addEventListener('input', () => { chosen.rows = ROWS; showPairs(); });
  at('more').addEventListener('click', () => { chosen.rows += 5 * ROWS; showPairs(); });
  at('pairs').tHead.addEventListener('click', event => {
    const key = event.target.dataset.sort;
    if (key === undefined) return;
    const sort = key.length > 1 ? key : Number(key);
    chosen.down = chosen.sort === sort ? !chosen.down : typeof sort === 'number';
    chosen.sort = sort; showPairs();
  });
  at('overview').addEventListener('click', event => {
    const name = event.target.closest('[data-name]')?.dataset.name;
    if (name) seek(name);
  });
  at('pair').addEventListener('mouseover', event => light(event.target.closest('[data-id]') || kept));
  at('pair').addEventListener('focusin', event => light(event.target.closest('[data-id]') || kept));
  at('pair').addEventListener('click', event => {
    const one = event.target.closest('[data-id]');
    if (one) follow(one);
  });
  document.addEventListener('keydown', event => {
    const one = event.target.closest?.('pre [data-id]');
    if (event.key === 'Enter' && one) follow(one);
    if (event.key === 'Escape' && !at('pair').hidden) location.hash = '';
  });
  addEventListener('hashchange', () => { kept = null; route(); });
  let wide = innerWidth;  // a phone resizes the page whenever its address bar comes or goes
  addEventListener('resize', () => {
    if (at('pair').hidden && wide !== innerWidth) showOverview();
    wide = innerWidth;
  });
  showOverview(); route();
}
