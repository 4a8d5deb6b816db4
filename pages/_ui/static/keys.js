// The keys of every page, and the dialog that names them. Streamlit has r and c for itself.

import { exportPage } from "./export.js";
import { show } from "./dialog.js";

const TYPING = "textarea, select, [contenteditable], [role=combobox], [role=dialog], dialog, input:not([type=radio], [type=checkbox], [type=range], [type=button])";
const KEYS = [
  ["p", "pause or resume the charts"],
  ["e", "export tables as CSV, charts as PNG or CSV"],
  ["?", "these keys"],
  ["Ctrl + Enter", "apply what is changed, where a page has Apply"],
  ["drag, double click", "zoom into a chart, and back"],
  ["Esc", "close"],
];

/** Called once; `feed` is what p pauses. */
export function listenToKeys(feed) {
  document.addEventListener("click", (event) => event.target.closest?.(".hw-help") && showKeys());
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.(TYPING)) return;
    if (event.key === "p" && document.querySelector(".hw-toggle")) feed.setLive(!feed.live);
    else if (event.key === "e") exportPage();
    else if (event.key === "?") showKeys();
    else return;
    event.preventDefault();
  });
}

function showKeys() {
  const list = document.createElement("dl");
  for (const [key, does] of KEYS) {
    const [term, text] = [document.createElement("dt"), document.createElement("dd")];
    term.textContent = key;
    text.textContent = does;
    list.append(term, text);
  }
  show("Keys", "keys", list);
}
