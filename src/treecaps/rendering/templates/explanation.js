const at = [...document.querySelectorAll('[data-n]')];
const of = t => t.closest('[data-n]') || t.querySelector(':scope > [data-n]');
const span = e => [+e.dataset.n, +(e.dataset.e || +e.dataset.n + 1)];
const show = (e, on) => { const [a, b] = span(e);
  for (const o of at) { const n = +o.dataset.n;
    if (o === e || (n >= a && n < b && (o.closest('pre') || n === a)))
      o.classList.toggle('on', on); } };
for (const kind of ['mouseover', 'focusin', 'mouseout', 'focusout'])
  document.addEventListener(kind, event => { const e = of(event.target);
    if (e) show(e, kind === 'mouseover' || kind === 'focusin'); });
document.addEventListener('click', event => { const e = event.target.closest('[data-n]');
  const other = e && at.find(o => o.dataset.n === e.dataset.n && !o.closest('.box, svg')
    ?.contains(e));
  if (other) other.scrollIntoView({ block: 'nearest' }); });
