// Pictures in outputs get the alt text that their output's metadata holds, where this course and IPython's Image(alt=…)
// put it, and the caption that this course puts there. The picture of a widget whose cell has not run says what it is.
// JupyterLab (4.6.6) reads a picture's width and height there, and passes the alt text over. The first notebook of a
// day that is opened in a page gets its table of contents beside it, where the window is wide enough. A notebook is not
// marked as changed because JupyterLab writes into it which Python its kernel is. And a widget has the time to load
// that a busy machine takes: after two seconds anywidget (0.11.0) would no longer let it hear the kernel.  Written by
// hand, not built. JupyterLab asks each extension for this container of webpack's module federation: `init` hands over
// the modules that extensions share, by name and version, `get` promises a module's factory.

{
  let shared;

  const note = (text) => {
    const line = document.createElement("div");
    line.textContent = text;
    line.style.cssText = "max-width: 720px; font-size: 13px; color: var(--jp-ui-font-color2)";
    return line;
  };

  // The renderer of JupyterLab, for the same kinds of pictures and at the same rank, with these.
  const withAlt = ({ RenderedImage, imageRendererFactory }) => {
    class DescribedImage extends RenderedImage {
      async render(model) {
        await super.render(model);
        const { alt, caption } = model.metadata[this.mimeType] ?? {};
        if (typeof alt === "string") this.node.querySelector("img").alt = alt;
        // A figure of the course has its alt text as plain text, too. A widget tells itself there, and is shown by a
        // picture only while there is no kernel behind it.
        const text = [model.data["text/plain"] ?? []].flat().join("");
        if (typeof alt === "string" && text && text !== alt && !text.startsWith("<IPython"))
          this.node.prepend(note("picture: run the cell"));
        if (typeof caption !== "string") return;
        this.node.append(note(caption));
      }
    }
    return { ...imageRendererFactory, createRenderer: (options) => new DescribedImage(options) };
  };

  const pictures = async () => {
    const [rendermime] = Object.values(shared["@jupyterlab/rendermime"]); // a singleton: there is one version
    const rendererFactory = withAlt((await rendermime.get())());
    return () => ({ id: "course_utils:pictures", rendererFactory, dataType: "string" });
  };

  const LESSON = /(^|\/)(notebooks|exercises|solutions)\/day\d[^/]*\.ipynb$/;
  const WIDE = 1100; // pixels, so that code keeps its 79 columns
  const contents = {
    id: "course_utils:contents",
    autoStart: true,
    activate(app) {
      let shown = false;
      const show = () => {
        const path = app.shell.currentWidget?.context?.path ?? "";
        if (shown || window.innerWidth < WIDE || !LESSON.test(path)) return;
        shown = true;
        app.commands.execute("toc:show-panel");
      };
      app.restored.then(() => {
        // not awaited: JupyterLab waits for extensions before it is restored
        app.shell.currentChanged?.connect(show);
        show();
      });
    },
  };

  // What is said of the kernel is told before the notebook is marked.
  const unmarked = async () => {
    const [notebook] = Object.values(shared["@jupyterlab/notebook"]);
    const { INotebookTracker } = (await notebook.get())();
    const hear = (model, { key }) => {
      if (["kernelspec", "language_info"].includes(key) && !model.dirty)
        queueMicrotask(() => {
          model.dirty = false;
        });
    };
    return {
      id: "course_utils:unmarked",
      autoStart: true,
      requires: [INotebookTracker],
      activate: (_app, tracker) => tracker.widgetAdded.connect((_, { model }) => model.metadataChanged.connect(hear)),
    };
  };

  const { timeout } = AbortSignal;
  AbortSignal.timeout = (after) => (after === 2000 ? new AbortController().signal : timeout.call(AbortSignal, after));

  window._JUPYTERLAB ??= {};
  window._JUPYTERLAB.course_utils = {
    init: (modules) => {
      shared = modules;
    },
    get: async (name) => {
      if (name === "./pictures") return pictures();
      if (name === "./contents") {
        const plugins = [contents, await unmarked()];
        return () => plugins;
      }
      throw new Error(`course_utils has no module ${name}`);
    },
  };
}
