// How the numbers of the stepper move, where motion is welcome: those that make a number fly to it, and matrices that
// the next stage takes up slide to their new places.

import { make } from "../shared/dom.js";

const MOVES = { duration: 600, easing: "ease-in-out" };
const MANY = 48; // numbers; more would only be a cloud
const moves = () => matchMedia("(prefers-reduced-motion: no-preference)").matches;

export function flyInto(root, sources, targets) {
  settle(root);
  if (!moves() || sources.length > MANY) return;
  const frame = root.getBoundingClientRect();
  const boxes = [targets[0], targets.at(-1)].map((node) => node.getBoundingClientRect());
  const x = (boxes[0].left + boxes[1].right) / 2;
  const y = (boxes[0].top + boxes[1].bottom) / 2;
  for (const source of sources) {
    const { left, top, width, height } = source.getBoundingClientRect();
    const copy = make("div", "course-stepper-copy", { "aria-hidden": "true" }, source.textContent);
    copy.style.cssText =
      `left: ${left - frame.left}px; top: ${top - frame.top}px; ` + `width: ${width}px; height: ${height}px`;
    root.append(copy);
    const there = `translate(${x - left - width / 2}px, ${y - top - height / 2}px)`;
    copy.animate(
      [{ opacity: 1 }, { opacity: 1, transform: there, offset: 0.75 }, { opacity: 0, transform: there }],
      MOVES,
    ).onfinish = () => copy.remove();
  }
  for (const target of targets)
    target.firstChild.animate([{ opacity: 0 }, { opacity: 0, offset: 0.7 }, { opacity: 1 }], MOVES);
}
export const settle = (root) => root.querySelectorAll(".course-stepper-copy").forEach((copy) => copy.remove());

// before: the grids that were shown; K becomes its transpose. The others come when these have made room.
export function slideFrom(before, grids) {
  if (!moves()) return;
  for (const { node, name } of grids) {
    const from = before.find((grid) => grid.name === name) ?? before.find((grid) => `${grid.name}ᵀ` === name);
    const [a, b] = [from?.node, node].map((each) => each?.getBoundingClientRect());
    node.animate(
      from
        ? [{ transform: `translate(${a.left - b.left}px, ${a.top - b.top}px)` }, { transform: "none" }]
        : [{ opacity: 0 }, { opacity: 0, offset: 0.6 }, { opacity: 1 }],
      MOVES,
    );
  }
}
