// Plotly from the wheel, loaded once a page.

let loading = null;

export function plotly() {
  loading ??= new Promise((done, fail) => {
    const script = document.createElement("script");
    script.src = new URL("api/plotly.js", document.baseURI).href;
    script.onload = () => done(window.Plotly);
    script.onerror = () => { loading = null; script.remove(); fail(new Error("plotly.js did not load")); };
    document.head.append(script);
  });
  return loading;
}
