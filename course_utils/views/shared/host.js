// Stands in for Jupyter where no Python runs: what the `render` of a widget needs. `model.alone` says that none
// answers.

const revive = (value) => {
  if (Array.isArray(value)) return value.map(revive);
  if (!value || typeof value !== "object") return value;
  if ("base64" in value) return new DataView(Uint8Array.from(atob(value.base64), (c) => c.charCodeAt(0)).buffer);
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, revive(inner)]));
};

// Callbacks run on a change, as in Jupyter.
export function modelOf(plain) {
  const state = revive(plain);
  const listeners = {};
  return {
    alone: true,
    get: (name) => state[name],
    set: (name, value) => {
      if (state[name] === value) return;
      state[name] = value;
      for (const call of listeners[`change:${name}`] ?? []) call();
    },
    save_changes: () => {},
    on: (event, call) => {
      listeners[event] = [...(listeners[event] ?? []), call];
    },
    off: (event, call) => {
      listeners[event] = (listeners[event] ?? []).filter((other) => other !== call);
    },
  };
}

// The text of an ES module, imported: a page from the file system may not import a file.
export async function imported(code) {
  const url = URL.createObjectURL(new Blob([code], { type: "text/javascript" }));
  return (await import(url)).default;
}

// Draw a widget with this state in place of what stands in `el`, its picture. It has a width while it is drawn.
export async function bringToLife(el, widget, state) {
  const drawn = document.createElement("div");
  drawn.style.cssText = "height: 0; overflow: hidden; visibility: hidden";
  el.append(drawn);
  await widget.render({ model: modelOf(state), el: drawn });
  drawn.removeAttribute("style");
  el.replaceChildren(drawn);
}
