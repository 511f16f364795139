// What only a browser knows of a page: each function returns the places that break one rule, and tests read them.
const checks = {
  // Text whose colour is less than 4.5 times as far from what lies behind it (WCAG 2.1, 1.4.3), as "ratio: text".
  faint() {
    const found = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const element = walker.currentNode.parentElement;
      const text = walker.currentNode.textContent.trim();
      if (!text || !element.checkVisibility() || ["title", "desc"].includes(element.tagName)) continue;
      const style = getComputedStyle(element);
      const ink = colour(element.tagName === "text" ? style.fill : style.color);
      const ratio = contrast(ink, behind(element));
      if (!(ratio >= 4.5)) found.push(`${ratio.toFixed(2)}: ${text}`);
    }
    return found;
  },
  // Pairs of texts in one picture whose boxes share area, and texts that leave their picture.
  crowded() {
    const found = [];
    for (const picture of document.querySelectorAll("svg")) {
      const name = picture.querySelector("title").textContent;
      const frame = picture.getBoundingClientRect();
      const texts = [...picture.querySelectorAll("text")].map((node) => [node.textContent, node.getBoundingClientRect()]);
      texts.forEach(([text, box], i) => {
        if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1 || box.bottom > frame.bottom + 1)
          found.push(`${name}: "${text}" leaves the picture`);
        for (const [other, beside] of texts.slice(i + 1)) {
          const wide = Math.min(box.right, beside.right) - Math.max(box.left, beside.left);
          const high = Math.min(box.bottom, beside.bottom) - Math.max(box.top, beside.top);
          if (wide > 0.5 && high > 0.5) found.push(`${name}: "${text}" and "${other}" overlap`);
        }
      });
    }
    return found;
  },
  // Tables without a caption, without column headers, or with a row without a header of its own.
  headless() {
    return [...document.querySelectorAll("table")]
      .filter((table) => {
        const columns = [...table.querySelectorAll("thead th")];
        const rows = [...table.querySelectorAll("tbody tr")];
        return !(
          table.caption?.textContent.trim() &&
          columns.length && columns.every((th) => th.scope === "col" && th.textContent.trim()) &&
          rows.length && rows.every((row) => row.querySelector("th[scope=row], th[scope=rowgroup]"))
        );
      })
      .map((table) => table.outerHTML.slice(0, 200));
  },
  // Charts whose drawing is larger than the card that they lie in.
  spilling() {
    return [...document.querySelectorAll(".chart")]
      .filter((chart) => [...chart.querySelectorAll("svg")].some((drawing) =>
        drawing.getBoundingClientRect().bottom > chart.closest("section").getBoundingClientRect().bottom + 1))
      .map((chart) => chart.id);
  },
  open() {
    document.querySelectorAll("details").forEach((details) => { details.open = true; });
  },
};

function colour(text) {
  const [red, green, blue, alpha = 1] = text.match(/[\d.]+/g).map(Number);
  return { channels: [red, green, blue], alpha };
}

// The colour of the nearest ancestor that has one; that of the page where none has.
function behind(element) {
  for (let node = element; node; node = node.parentElement) {
    const found = colour(getComputedStyle(node).backgroundColor);
    if (found.alpha === 1) return found;
  }
  return colour("rgb(255, 255, 255)");
}

function contrast(one, other) {
  const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
}

function luminance({ channels }) {
  const [red, green, blue] = channels.map((value) => {
    const share = value / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

return checks[arguments[0]]();
