// Shows the weights that gallery.py sent, and the field for a text of one's own where Python can read one.

import { listen, make, makeRoot, newId, setTraits } from "../shared/dom.js";
import { makeReplyStatus } from "../shared/heads.js";
import { GalleryMaps } from "./gallery_maps.js";

const LATE = "Waiting for Python, which reads a text while the kernel runs: start it and run the cell.";

// The gallery, drawn anew for another text, and below it the field for a text of one's own where Python can read one.
class GalleryView {
  constructor({ model, el }) {
    this.model = model;
    this.place = make("div");
    el.append(this.place);
    this.maps = new GalleryMaps({ model, el: this.place });
    this.stopListening = listen(model, { _tokens: () => this.again() });
    if (model.get("_own")) {
      if (model.alone) offerStoredTexts({ model, el, before: () => this.maps.remove() });
      else this.own = new OwnText({ model, el });
    }
  }

  again() {
    this.maps.remove();
    this.place.replaceChildren();
    this.maps = new GalleryMaps({ model: this.model, el: this.place });
  }

  remove() {
    this.stopListening();
    this.maps.remove();
    this.own?.remove();
  }
}

function render(options) {
  const gallery = new GalleryView(options);
  return () => gallery.remove();
}

// Without a kernel: the texts that Python read before.
function offerStoredTexts({ model, el, before }) {
  const root = makeRoot(model, "course-heads-root course-gallery-own", { role: "group", "aria-label": "other texts" });
  const { texts } = model.get("_alone");
  const form = make("div", "course-row course-gallery-form");
  const buttons = texts.map(({ text, tokens, thousandths, layout }, place) => {
    const button = make("button", "", { type: "button", "aria-pressed": String(!place) }, text || "the text at first");
    button.addEventListener("click", () => {
      before(); // what is drawn has another number of tokens
      setTraits(model, { row: null, _layout: layout, _thousandths: thousandths, _tokens: [...tokens] });
      for (const each of buttons) each.setAttribute("aria-pressed", String(each === button));
    });
    return button;
  });
  if (buttons.length > 1) form.append(make("span", "", {}, "texts read before"), ...buttons);
  root.append(form, make("div", "course-faint", {}, "A text of your own needs Python: run this lesson in JupyterLab."));
  el.append(root);
}

class OwnText {
  constructor({ model, el }) {
    const { readable, most } = model.get("_own");
    const uid = newId("course-gallery-own");
    const root = makeRoot(model, "course-heads-root course-gallery-own", {
      role: "group",
      "aria-label": "a text of your own",
    });
    const form = make("form", "course-row course-gallery-form");
    const label = make("label", "", { for: uid }, "your own text");
    const field = make("input", "", {
      id: uid,
      type: "text",
      maxlength: 4 * most,
      autocomplete: "off",
      autocapitalize: "off",
      spellcheck: "false",
      "aria-describedby": `${uid}-hint`,
    });
    const hint = make(
      "div",
      "course-faint",
      { id: `${uid}-hint` },
      `${readable ? `It may have ${readable}, ` : ""}at most ${most} tokens.`,
    );
    const said = make("div", "course-gallery-said", { role: "status" });
    this.status = makeReplyStatus(model, said, LATE);
    form.append(label, field, make("button", "", { type: "submit" }, "show"));
    root.append(form, hint, said);
    el.append(root);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      setTraits(model, { _typed: { text: field.value, number: model.get("_typed").number + 1 } });
      this.status.show();
    });
    field.addEventListener("keydown", (event) => event.stopPropagation());
    this.status.show();
    this.stopListening = listen(model, { _said: this.status.show });
  }

  remove() {
    this.status.stop();
    this.stopListening();
  }
}

export default { render };
