// Entry of the live component: mounts the head (badge, numbers), the board (instances, charts), the watts, the KV caches
// or the bar (title, badge) of one feed.

import { Bar } from "./bar.js";
import { Board } from "./board.js";
import { Feed } from "./feed.js";
import { Head } from "./head.js";
import { listenToKeys } from "./keys.js";
import { Multiples } from "./multiples.js";

const feed = new Feed();
const mounted = new WeakMap();
const PARTS = { head: Head, board: Board, bar: Bar, watts: Board, multiples: Multiples };

listenToKeys(feed);

/** Load the stylesheet once; nothing is drawn before it is there, so nothing jumps. */
function stylesheet() {
  const href = new URL("live.css", import.meta.url).href;
  let link = document.head.querySelector(`link[href="${href}"]`);
  if (link?.sheet) return Promise.resolve();
  if (!link) {
    link = document.createElement("link");
    link.rel = "stylesheet";
    link.href = href;
    document.head.append(link);
  }
  return new Promise((done) => {
    link.addEventListener("load", done, { once: true });
    link.addEventListener("error", done, { once: true });
  });
}

/** Called on every run of the page with the same element; the view is made once, the feed lets it go. */
export async function mount({ parentElement, data, setTriggerValue }) {
  const root = parentElement.querySelector(".hw-live");
  await stylesheet();
  if (mounted.has(root)) return;
  const view = new PARTS[data.part](root, data, setTriggerValue);
  mounted.set(root, view);
  feed.add(view);
}
