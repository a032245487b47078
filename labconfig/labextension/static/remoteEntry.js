// Pictures in outputs get the alt text that their output's metadata holds, where this course and IPython's Image(alt=…)
// put it. JupyterLab (4.6.6) reads a picture's width and height there, and passes the alt text over.
//
// Written by hand, not built. JupyterLab asks each extension for this container of webpack's module federation:
// `init` hands over the modules that extensions share, by name and version, `get` promises a module's factory.

{
  let shared;

  // The renderer of JupyterLab, for the same kinds of pictures and at the same rank, with one line more.
  const withAlt = ({ RenderedImage, imageRendererFactory }) => {
    class DescribedImage extends RenderedImage {
      async render(model) {
        await super.render(model);
        const alt = model.metadata[this.mimeType]?.alt;
        if (typeof alt === "string") this.node.querySelector("img").alt = alt;
      }
    }
    return { ...imageRendererFactory, createRenderer: (options) => new DescribedImage(options) };
  };

  const pictures = async () => {
    const [rendermime] = Object.values(shared["@jupyterlab/rendermime"]); // a singleton: there is one version
    const rendererFactory = withAlt((await rendermime.get())());
    return () => ({ id: "course_utils:pictures", rendererFactory, dataType: "string" });
  };

  window._JUPYTERLAB ??= {};
  window._JUPYTERLAB.course_utils = {
    init: (modules) => {
      shared = modules;
    },
    get: (name) => {
      if (name !== "./pictures") throw new Error(`course_utils has no module ${name}`);
      return pictures();
    },
  };
}
