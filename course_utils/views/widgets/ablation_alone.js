// Stands in for ablation.py on a page without a kernel: it gives what was computed before.

import { listen } from "../shared/dom.js";

const NOT_BEFORE = "the result for these heads is not stored: computing it needs Python, in JupyterLab";

export function answerAblation(model, heads, unknown) {
  const { answers, rises } = model.get("_alone");
  const follow = () => {
    const off = model.get("off");
    const known = answers[off.map(([l, h]) => l * heads + h).join(",")];
    const before = model.get("_result");
    unknown(known ? "" : NOT_BEFORE);
    if (!known) return;
    // never shrinks
    const top = Math.max(before.top, Math.ceil(Math.max(0, ...known.losses.filter((loss) => loss !== null))));
    model.set("_result", { ...before, ...known, off, top });
  };
  const each = () => {
    model.set("_rises", rises);
    model.set("_answered", model.get("_asked"));
  };
  return listen(model, { off: follow, _asked: each });
}
