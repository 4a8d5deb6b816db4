// The tools beside a title: time range, pause, and a link to the keys.

import { WINDOWS } from "./feed.js";

export const HELP = `<button type="button" class="hw-help" data-testid="keys-open" aria-label="Keys" title="Keys; key ?">?</button>`;
export const TOOLS = `
    <span class="hw-ranges" role="group" aria-label="Time range">${WINDOWS.map((s) => `<button type="button" data-testid="range-${s}">${s / 60} min</button>`).join("")}</span>
    <button type="button" class="hw-toggle" data-testid="live-toggle" aria-pressed="false" title="Charts stand still, nothing is lost; key p">Pause charts</button>
    ${HELP}`;

/** Called once, when the feed takes the view; a title may hold the help alone. */
export function setTools(root, feed) {
  root.querySelectorAll(".hw-ranges button").forEach((button, i) => {
    button.addEventListener("click", () => { feed.setWindow(WINDOWS[i]); showTools(root, feed); });
  });
  root.querySelector(".hw-toggle")?.addEventListener("click", () => feed.setLive(!feed.live));
}

export function showTools(root, feed) {
  root.querySelectorAll(".hw-ranges button").forEach((button, i) => button.setAttribute("aria-pressed", String(WINDOWS[i] === feed.window)));
  const toggle = root.querySelector(".hw-toggle");
  if (!toggle) return;
  toggle.setAttribute("aria-pressed", String(!feed.live));
  const word = feed.live ? "Pause charts" : "Resume charts";
  if (toggle.textContent !== word) toggle.textContent = word;
}
