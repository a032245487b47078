// Nodes of a drawing, for the widgets that have one.

import { fillNode } from "./dom.js";

export const makeSvg = (tag, name, attributes = {}, text) =>
  fillNode(document.createElementNS("http://www.w3.org/2000/svg", tag), name, attributes, text);
