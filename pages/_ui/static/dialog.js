// A small dialog of the page: over everything, closed by Esc, by its button or by a click beside it.

/** Show `content` under `title`; what was open before is closed. Nothing happens on a page without a title of its own. */
export function show(title, testid, content) {
  const root = document.querySelector(".hw-title")?.parentElement;
  if (!root) return;
  document.querySelector(".hw-dialog")?.remove();
  const dialog = document.createElement("dialog");
  dialog.className = "hw-dialog";
  dialog.dataset.testid = testid;
  dialog.setAttribute("aria-label", title);
  const head = document.createElement("h2");
  head.textContent = title;
  const close = document.createElement("button");
  close.type = "button";
  close.textContent = "Close";
  close.addEventListener("click", () => dialog.close());
  dialog.append(head, content, close);
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  dialog.addEventListener("close", () => dialog.remove());
  root.append(dialog);
  dialog.showModal();
  close.focus();
}
