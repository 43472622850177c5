// Fills in what was being calculated, copies a link, filters the overview while somebody types.
// Every page works without this file.
(() => {
  const read = async (address, signal) => {
    const response = await fetch(address, { signal, headers: { Accept: "text/html" } });
    if (!response.ok || response.redirected) return null;
    return new DOMParser().parseFromString(await response.text(), "text/html");
  };
  const replace = (page, id) => {
    const [old, now] = [document.getElementById(id), page.getElementById(id)];
    if (!old || !now) return;
    if (old.querySelector("details[open]")) now.querySelector("details")?.setAttribute("open", "");
    old.replaceWith(now);
  };

  const PAUSE = 2000; // milliseconds after which missing parts are asked for again
  const fill = async () => {
    const missing = document.querySelectorAll("[data-waiting]");
    if (!missing.length) return;
    const address = location.href;
    const page = await read(address).catch(() => null);
    // The reader may have asked for something else meanwhile.
    if (page && address === location.href) for (const each of missing) replace(page, each.id);
    later();
  };
  let next = 0;
  const later = () => {
    clearTimeout(next);
    next = setTimeout(fill, PAUSE);
  };
  later();

  const copy = document.getElementById("copy");
  if (copy && navigator.clipboard) {
    copy.hidden = false;
    copy.addEventListener("click", async () => {
      await navigator.clipboard.writeText(document.getElementById(copy.dataset.of).value);
      copy.textContent = copy.dataset.done;
    });
  }

  const form = document.getElementById("filters");
  if (!form) return;
  const KEYS = 250; // milliseconds without a key, so that a word is one request
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
      const page = await read(target, asked.signal);
      // The way to the login, a mistake or an error: the browser shows it as it shows any page.
      if (!page) {
        location.assign(target);
        return;
      }
      for (const place of ["results", "strip"]) replace(page, place);
      if (location.href !== new URL(target, location.href).href) history.replaceState(null, "", target);
      later();
    } catch (error) {
      if (error.name !== "AbortError") location.assign(target);
    }
  };
  const soon = (pause) => {
    clearTimeout(timer);
    timer = setTimeout(show, pause);
  };
  form.addEventListener("input", (event) => {
    if (event.target.type === "search") soon(KEYS);
  });
  form.addEventListener("change", () => soon(0));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    soon(0);
  });
})();
