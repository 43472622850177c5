// Filters the overview while somebody types. Without this file the form does the same.
(() => {
  const form = document.getElementById("filters");
  if (!form) {
    // A single metric has nothing to filter.
    const results = document.getElementById("results");
    if (results.dataset.refresh) setTimeout(() => location.reload(), 1000 * results.dataset.refresh);
    return;
  }
  const PAUSE = 250; // milliseconds without a key, so that a word is one request
  let timer = 0;
  let asked = null;

  const address = () => {
    const query = new URLSearchParams();
    for (const [name, text] of new FormData(form)) if (text && text !== "registry") query.append(name, text);
    const text = query.toString();
    return form.getAttribute("action") + (text ? `?${text}` : "");
  };

  const show = async () => {
    if (asked) asked.abort();
    asked = new AbortController();
    const target = address();
    try {
      const response = await fetch(target, { signal: asked.signal, headers: { Accept: "text/html" } });
      // The way to the login, a mistake or an error: the browser shows it as it shows any page.
      if (!response.ok || response.redirected) {
        location.assign(target);
        return;
      }
      const page = new DOMParser().parseFromString(await response.text(), "text/html");
      for (const place of ["results", "strip"]) {
        const [old, now] = [document.getElementById(place), page.getElementById(place)];
        if (!old || !now) continue;
        const open = old.querySelector("details[open]");
        if (open && now.querySelector("details")) now.querySelector("details").open = true;
        old.replaceWith(now);
      }
      if (location.href !== new URL(target, location.href).href) history.replaceState(null, "", target);
      again();
    } catch (error) {
      if (error.name !== "AbortError") location.assign(target);
    }
  };

  const later = (pause) => {
    clearTimeout(timer);
    timer = setTimeout(show, pause);
  };
  // While something is being calculated, the page looks again by itself.
  const again = () => {
    const seconds = document.getElementById("results").dataset.refresh;
    if (seconds) later(1000 * seconds);
  };
  again();
  form.addEventListener("input", (event) => {
    if (event.target.type === "search") later(PAUSE);
  });
  form.addEventListener("change", () => later(0));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    later(0);
  });
})();
