// Touch screens show no titles.
const told = document.getElementById('told');
for (const kind of ['click', 'mouseover'])
  document.addEventListener(kind, event => { const title = event.target.closest('circle, rect')
    ?.querySelector('title'); told.textContent = title ? title.textContent : ''; });
