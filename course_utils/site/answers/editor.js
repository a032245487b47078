// The editor of an answer on a page. `npm run editor` bundles it, with all that it imports, into assets/codemirror.js.

import { closeBrackets, closeBracketsKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { python } from "@codemirror/lang-python";
import { bracketMatching, indentOnInput, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { EditorState } from "@codemirror/state";
import { drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers } from "@codemirror/view";
import { classHighlighter } from "@lezer/highlight";

// To close a string of three quotes one types three, and the first already passes all three that the editor has put
// there. The other two then add nothing.
let passed = { at: -1, left: 0 };
const closeThreeQuotes = EditorView.inputHandler.of((view, from, to, text) => {
  const isQuote = from === to && (text === "'" || text === '"');
  if (isQuote && passed.left && from === passed.at) {
    passed.left -= 1;
    return true;
  }
  const isClosing = isQuote && view.state.sliceDoc(from, from + 3) === text.repeat(3);
  passed = isClosing ? { at: from + 3, left: 2 } : { at: -1, left: 0 };
  return false;
});

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
        closeThreeQuotes,
        closeBrackets(),
        EditorView.lineWrapping,
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
          else if (update.selectionSet) passed = { at: -1, left: 0 };
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
