// The editor of an answer on a page. `npm run editor` bundles it, with all that it imports, into assets/codemirror.js.

import { closeBrackets, closeBracketsKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { python } from "@codemirror/lang-python";
import { bracketMatching, indentOnInput, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { EditorState } from "@codemirror/state";
import { drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers } from "@codemirror/view";
import { classHighlighter } from "@lezer/highlight";

// Return an editor in `parent`, with `text` and `setText`. Escape, then Tab, leaves it by the keyboard. `selection` is
// what is selected in the text at first: { anchor, head }.
window.course.editor = ({ parent, text, selection, label, onChange, onCheck }) => {
  const view = new EditorView({
    parent,
    state: EditorState.create({
      doc: text,
      selection,
      extensions: [
        lineNumbers(),
        history(),
        drawSelection(),
        indentOnInput(),
        indentUnit.of("    "),
        EditorState.tabSize.of(4),
        bracketMatching(),
        closeBrackets(),
        highlightActiveLine(),
        python(),
        syntaxHighlighting(classHighlighter),
        EditorView.contentAttributes.of({ "aria-label": label, tabindex: "0" }),
        keymap.of([
          { key: "Shift-Enter", run: onCheck },
          ...closeBracketsKeymap,
          ...defaultKeymap,
          ...historyKeymap,
          indentWithTab,
        ]),
        EditorView.updateListener.of((update) => {
          if (update.docChanged) onChange(view.state.doc.toString());
        }),
      ],
    }),
  });
  return {
    get text() {
      return view.state.doc.toString();
    },
    setText: (changed) => view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: changed } }),
    focus: () => view.focus(),
  };
};
