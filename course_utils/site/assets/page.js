// The script of every page of the site. Widgets load when they come near; until then, and without scripts, there is a
// picture in their place. Nothing leaves the page.

import { bringToLife, imported } from "../../views/shared/host.js";

const base = new URL(".", document.currentScript.src).href;
const states = {};
const sources = {};
const loaded = {};
let meanings = {};
window.course = {
  base,
  meanings: (texts) => {
    meanings = texts;
  },
  state: (name, value) => {
    states[name] = value;
  },
  widget: (name, code, css) => {
    sources[name] = { code, css };
  },
};

const load = (file) => {
  loaded[file] ??= new Promise((done, failed) => {
    const script = document.createElement("script");
    script.src = base + file;
    script.onload = done;
    script.onerror = () => failed(new Error(`${file} is missing`));
    document.head.append(script);
  });
  return loaded[file];
};
course.load = load;

// The widget of a name, with its style in the page.
const ready = {};
const widgetOf = (name) =>
  (ready[name] ??= load(`widgets/${name}.js`).then(() => {
    const style = document.createElement("style");
    style.textContent = sources[name].css;
    document.head.append(style);
    return imported(sources[name].code);
  }));

async function wake(place) {
  if (place.dataset.alive) return;
  place.dataset.alive = "soon";
  const [drawing] = await Promise.all([widgetOf(place.dataset.widget), load(`states/${place.id}.js`)]);
  await bringToLife(place, drawing, states[place.id]);
  place.dataset.alive = "yes";
}

const draw = (place) => wake(place).catch((error) => console.error(`the widget ${place.id} stays a picture:`, error));

// Widgets are drawn in JupyterLab's colours; some look at its mark for a dark theme.
const root = document.documentElement;
function tellTheme() {
  document.body.dataset.jpThemeLight = String(root.dataset.theme !== "dark");
}

// What is wider than the page scrolls by itself, by the keyboard too, and says so. The room that code has on its right
// may be used up: nothing is cut then. It is measured again when a font has come.
const WIDE = "div.formula, .course-figure, .course-tables, pre, .cell_output .output, .pst-scrollable-table-container";
const reachable = () => {
  const boxes = [...document.querySelectorAll(`:is(${WIDE}, :is(p, li, dd) :is(span, mark).formula)`)];
  for (const box of boxes) box.classList.remove("course-wide");
  const wide = boxes.map((box) =>
    box.matches("span, mark")
      ? box.offsetWidth > box.closest("p, li, dd, td").clientWidth
      : box.scrollWidth - parseFloat(getComputedStyle(box).paddingRight) > box.clientWidth + 1,
  );
  boxes.forEach((box, place) => {
    box.classList.toggle("course-wide", wide[place]);
    if (wide[place]) box.tabIndex = 0;
    else if (box.tabIndex === 0) box.removeAttribute("tabindex");
  });
};

// Chromium gives a root the wrong width: too much, with room for the widest sign of a root that the font has, or, laid
// out a second time, too little, so that what stands under the root reaches over what follows. What stands under it has
// its right size and place in both cases, so the width is set by that. It is measured again when a font has come.
function fitRoots() {
  const roots = [...document.querySelectorAll("msqrt")].filter((root) => root.getClientRects().length);
  const widths = roots.map(
    (root) => root.lastElementChild.getBoundingClientRect().right - root.getBoundingClientRect().left + 1,
  );
  roots.forEach((root, place) => {
    root.style.width = `${widths[place] / parseFloat(getComputedStyle(root).fontSize)}em`;
  });
}

const fit = () => {
  fitRoots();
  reachable();
};
course.fit = fit;

// What a term means is shown below it, for the mouse and for the keyboard; Escape takes it away. Its formulas are set
// when it is first shown; a screen reader hears them as a line of signs.
function explain(term, place) {
  const popup = document.createElement("span");
  Object.assign(popup, {
    id: `course-meaning-${place}`,
    className: "course-meaning",
    role: "tooltip",
    textContent: term.title,
    hidden: true,
  });
  popup.setAttribute("aria-label", term.title);
  term.removeAttribute("title");
  term.setAttribute("aria-describedby", popup.id);
  term.after(popup);
  const lay = () => {
    const right = document.documentElement.clientWidth - popup.offsetWidth - 8;
    const left = Math.max(8, Math.min(term.getClientRects()[0].left, right));
    popup.style.left = `${left - popup.offsetParent.getBoundingClientRect().left}px`;
  };
  const show = async () => {
    popup.hidden = false;
    lay();
    await load("meanings.js");
    popup.innerHTML = meanings[term.hash.slice(1)];
    fitRoots();
    if (!popup.hidden) lay();
  };
  const hide = () => {
    popup.hidden = !(term.matches(":hover, :focus-visible") || popup.matches(":hover"));
  };
  for (const come of ["mouseenter", "focus"]) term.addEventListener(come, show);
  for (const go of ["mouseleave", "blur"])
    for (const one of [term, popup]) one.addEventListener(go, () => setTimeout(hide, 100));
  addEventListener("keydown", ({ key }) => {
    if (key === "Escape") popup.hidden = true;
  });
}

// The contents beside a page mark the part that is read and open its headings. Widgets change where headings stand, so
// it is found anew whenever the page scrolls or its height changes.
function followReader() {
  const links = [...document.querySelectorAll("nav.page-toc a")];
  const entries = [...document.querySelectorAll(".toc-entry")];
  const places = links.map((link) => document.getElementById(decodeURIComponent(link.hash.slice(1))));
  const mark = () => {
    const above = (place) => place?.getBoundingClientRect().top <= innerHeight / 3;
    const end = root.scrollHeight - innerHeight - 2;
    const current = links[end > 0 && scrollY >= end ? links.length - 1 : places.findLastIndex(above)];
    for (const link of links) {
      link.classList.toggle("active", link === current);
      if (link === current) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
    for (const entry of entries) entry.classList.toggle("active", entry.contains(current ?? null));
    if (current) keepInSight(current.closest(".bd-sidebar-secondary"), current);
  };
  const keepInSight = (box, link) => {
    const frame = box.getBoundingClientRect();
    const { top, bottom } = link.getBoundingClientRect();
    const room = 60;
    box.scrollTop +=
      Math.max(0, bottom + room - Math.min(frame.bottom, innerHeight)) + Math.min(0, top - room - frame.top);
  };
  let asked = false;
  const soon = () => {
    if (!asked)
      requestAnimationFrame(() => {
        asked = false;
        mark();
      });
    asked = true;
  };
  addEventListener("scroll", soon, { passive: true });
  new ResizeObserver(soon).observe(document.body);
}

// A day can be printed as a book. On paper what is folded is open, and nothing is pale as on a dark page.
function offerPrint(line) {
  const button = document.createElement("button");
  button.className = "course-print";
  button.textContent = "Print it as a book.";
  button.addEventListener("click", () => print());
  line.append(" ", button);
}
addEventListener("beforeprint", () => {
  const { theme } = root.dataset;
  root.dataset.theme = "light";
  addEventListener(
    "afterprint",
    () => {
      root.dataset.theme = theme;
    },
    { once: true },
  );
  for (const folded of document.querySelectorAll("details:not([open])")) folded.open = true;
});

addEventListener("DOMContentLoaded", () => {
  tellTheme();
  if (document.querySelector(".course-answer, .course-progress")) load("answers.js");
  new MutationObserver(tellTheme).observe(root, { attributes: true, attributeFilter: ["data-theme"] });
  followReader();
  document.querySelectorAll(".course-here").forEach(offerPrint);
  document.querySelectorAll("a.course-term[title]").forEach(explain);
  document.addEventListener("focusin", async ({ target }) => {
    if (!target.matches("input[type=search]")) return;
    await load("search.js");
    course.suggest(target);
  });
  fit();
  document.fonts.ready.then(fit);
  document.fonts.addEventListener("loadingdone", fit);
  addEventListener("resize", reachable);
  const near = new IntersectionObserver(
    (seen) => {
      for (const { isIntersecting, target } of seen) {
        if (!isIntersecting) continue;
        near.unobserve(target);
        draw(target);
      }
    },
    { rootMargin: "600px 0px" },
  );
  const places = document.querySelectorAll(".course-alive");
  for (const place of places) near.observe(place);
  // Who goes by keys meets only what lives, so the first Tab wakes all.
  const tabbed = ({ key }) => {
    if (key !== "Tab") return;
    removeEventListener("keydown", tabbed);
    places.forEach(draw);
  };
  addEventListener("keydown", tabbed);
});
