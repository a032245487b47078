// What the stepper's page makes of the state that it is sent, for tests without a browser.
import { tellStory } from "../../course_utils/views/widgets/stepper_story.js";

function storyOf(numbers, labels, theirs) {
  const read = (rows) => rows.map((row) => row.map(Number));
  return tellStory(numbers, labels, theirs && { output: read(theirs.output), weights: read(theirs.weights) });
}

// The lines of arithmetic of a cell, [matrix, row, column], and the parts of other matrices that it comes from.
export const explained = (numbers, labels, theirs, [name, row, column]) =>
  storyOf(numbers, labels, theirs).matrices[name].why(row, column);

// The stages, each with its formula and its matrices: name, shape, rows, columns, text, and where it differs.
export function told(numbers, labels, theirs) {
  const { stages, matrices } = storyOf(numbers, labels, theirs);
  return stages.map(({ name, formula, items, fills }) => ({
    name,
    formula,
    steps: fills.length,
    matrices: items
      .filter(({ matrix }) => matrix)
      .map(({ matrix }) => {
        const { shape, role, rows, columns, text, differs, levels } = matrices[matrix];
        return { name: matrix, shape, role, rows, columns, text, differs, levels: levels ?? [] };
      }),
  }));
}
