// Where the labels of marks and of lines go, so that they never overlap.

const MIN_GAP_PX = 40;
const CHAR_PX = 5.4;
const LINE_PX = 12;

/**
 * Labels for marks at `x` (px, ascending): marks closer than 40 px share one label ("drain l4-0 +2"),
 * and a label that would run into its neighbour moves to the second row, or is merged if both are taken.
 */
export function labels(marks) {
  const shown = [];
  for (const mark of marks) {
    const last = shown[shown.length - 1];
    if (last && mark.x - last.x < MIN_GAP_PX) {
      last.more += 1;
      continue;
    }
    shown.push({ x: mark.x, label: mark.label, more: 0, row: 0 });
  }
  const ends = [-Infinity, -Infinity];
  const placed = [];
  for (const item of shown) {
    const row = ends.findIndex((end) => item.x > end);
    if (row < 0) {
      placed[placed.length - 1].more += 1 + item.more;
      continue;
    }
    item.row = row;
    const text = item.more ? `${item.label} +${item.more}` : item.label;
    ends[row] = item.x + text.length * CHAR_PX + 8;
    placed.push(item);
  }
  return placed.map((p) => ({ x: p.x, row: p.row, text: p.more ? `${p.label} +${p.more}` : p.label }));
}

/** Heights `y` (px from the top) spread to at least 12 px apart inside [0, height], order kept. */
export function spread(entries, height) {
  const sorted = [...entries].sort((a, b) => a.y - b.y);
  let floor = 4;
  for (const entry of sorted) {
    entry.y = Math.max(entry.y, floor);
    floor = entry.y + LINE_PX;
  }
  let ceiling = height - 4;
  for (const entry of sorted.reverse()) {
    entry.y = Math.min(entry.y, ceiling);
    ceiling = entry.y - LINE_PX;
  }
  return sorted;
}
