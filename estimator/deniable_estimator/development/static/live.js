// Asks for what is new, and puts it into the page. The server answers as soon as there is something.
"use strict";

const box = document.getElementById("live");
const news = document.getElementById("news");
const gone = document.getElementById("gone");
const PAUSE = 1000;

const numbers = () => [...box.querySelectorAll("[data-number]")].map((each) => Number(each.dataset.number));
const mistakes = () => box.querySelectorAll("section .told > li").length;

/** Put newer content in place. What a reader has opened stays open, and the focus where it is. */
function show(html) {
  const before = Math.max(0, ...numbers());
  const told = mistakes();
  const opened = new Map([...box.querySelectorAll("details[id]")].map((each) => [each.id, each.open]));
  const focused = document.activeElement?.closest("#live details[id]")?.id;
  box.innerHTML = html;
  for (const [id, open] of opened) {
    const details = document.getElementById(id);
    // The newest report is open until the next one comes, unless a reader has closed it.
    if (details && !(open && details.parentElement.dataset.number === String(before))) details.open = open;
  }
  if (focused) document.getElementById(focused)?.querySelector("summary").focus();
  const arrived = [...box.querySelectorAll("[data-number]")].filter((each) => Number(each.dataset.number) > before);
  for (const each of arrived) each.classList.add("arrived");
  if (arrived.length) news.textContent = `${news.dataset.arrived} ${arrived[0].dataset.metric}`;
  else if (mistakes() > told) news.textContent = news.dataset.mistake;
}

async function follow() {
  for (;;) {
    try {
      // What is still being calculated changes without a report.
      const pending = box.querySelector("[data-pending]");
      if (pending) await new Promise((resolve) => setTimeout(resolve, PAUSE));
      const after = pending ? "" : `?after=${box.dataset.version}`;
      const response = await fetch(`/live/part${after}`, { cache: "no-store" });
      const version = response.headers.get("X-Version");
      if (response.redirected || !response.ok || version === null) {
        // Another `deniable dev` runs here now; it knows nothing of this page.
        location.reload();
        return;
      }
      if (pending || version !== box.dataset.version) {
        box.dataset.version = version;
        show(await response.text());
      }
      gone.hidden = true;
    } catch {
      gone.hidden = false;
      await new Promise((resolve) => setTimeout(resolve, PAUSE));
    }
  }
}

void follow();
