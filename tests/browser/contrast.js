// Every visible piece of text whose contrast with what lies behind it is below what WCAG 2.2 AA asks for (1.4.3).
() => {
  const parse = (text) => {
    const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = text;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
    return { r, g, b, a: a / 255 };
  };
  const known = new Map();
  const color = (text) => {
    if (!known.has(text)) known.set(text, parse(text));
    return known.get(text);
  };
  const faded = (c, alpha) => ({ ...c, a: c.a * alpha });
  const over = (top, below) => {
    const mix = (key) => top[key] * top.a + below[key] * (1 - top.a);
    return { r: mix("r"), g: mix("g"), b: mix("b"), a: 1 };
  };
  const luminance = ({ r, g, b }) => {
    const [x, y, z] = [r, g, b].map((v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const contrast = (one, other) => {
    const [dark, light] = [luminance(one), luminance(other)].sort((a, b) => a - b);
    return (light + 0.05) / (dark + 0.05);
  };
  const opacity = (element) => {
    let product = 1;
    for (let e = element; e; e = e.parentElement) product *= Number(getComputedStyle(e).opacity);
    return product;
  };
  // what is painted behind an element of HTML: the backgrounds of those around it
  const behind = (element) => {
    const layers = [];
    for (let e = element; e; e = e.parentElement) layers.push(color(getComputedStyle(e).backgroundColor));
    return layers.reverse().reduce((below, top) => over(top, below), color("Canvas"));
  };
  // shapes of the picture that lie under a point, lowest first
  const shapes = (text, x, y) => {
    const hit = document.elementsFromPoint(x, y);
    const under = hit.slice(hit.indexOf(text.closest("text")) + 1).filter((e) => e.ownerSVGElement && !e.closest("text"));
    return under.reverse().map((e) => {
      const style = getComputedStyle(e);
      if (style.fill === "none" || style.fill.startsWith("url")) return faded(color("#000"), 0);
      return faded(color(style.fill), Number(style.fillOpacity) * opacity(e));
    });
  };
  const bad = [];
  let checked = 0;
  const judge = (text, ink, paper, style) => {
    checked += 1;
    const size = parseFloat(style.fontSize), large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    const found = contrast(over(ink, paper), paper), needed = large ? 3 : 4.5;
    if (found < needed) bad.push(`${found.toFixed(2)} < ${needed}: ${text.slice(0, 60)}`);
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = walker.currentNode.data.trim(), element = walker.currentNode.parentElement;
    if (!text || element.closest("script, style, title") || !element.checkVisibility({ visibilityProperty: true })) continue;
    const style = getComputedStyle(element);
    if (!element.ownerSVGElement) {
      judge(text, faded(color(style.color), opacity(element)), behind(element), style);
      continue;
    }
    const svg = element.closest("svg"), ink = faded(color(style.fill), Number(style.fillOpacity) * opacity(element));
    element.scrollIntoView({ block: "center", inline: "center" });
    const box = element.getBoundingClientRect();
    for (const share of [0.1, 0.5, 0.9]) {
      const x = box.left + box.width * share, y = box.top + box.height / 2;
      judge(text, ink, shapes(element, x, y).reduce((below, top) => over(top, below), behind(svg)), style);
    }
  }
  for (const box of document.querySelectorAll("input")) {
    const style = getComputedStyle(box, "::placeholder");
    if (box.checkVisibility()) judge(box.placeholder, faded(color(style.color), Number(style.opacity)), behind(box), style);
  }
  return { bad, checked };
}
