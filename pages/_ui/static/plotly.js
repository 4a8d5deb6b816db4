// Plotly from the wheel, loaded once a page; the document may have asked for it already (early.py).

const SOURCE = "api/plotly.js";
let loading = null;

export function plotly() {
  loading ??= new Promise((done, fail) => {
    if (window.Plotly) {
      done(window.Plotly);
      return;
    }
    const script = document.querySelector(`script[src="${SOURCE}"]`) ?? document.createElement("script");
    script.addEventListener("load", () => done(window.Plotly));
    script.addEventListener("error", () => { loading = null; script.remove(); fail(new Error("plotly.js did not load")); });
    if (script.isConnected) return;
    script.src = new URL(SOURCE, document.baseURI).href;
    document.head.append(script);
  });
  return loading;
}
