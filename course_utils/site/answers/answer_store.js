// What a learner writes on the pages, kept by this browser alone: the text and the points of each answer.

const NAME = "attention-course";
const STORE = "answers";
const others = window.BroadcastChannel ? new BroadcastChannel(NAME) : null;
let opened = null;

const asPromise = (request) =>
  new Promise((done, failed) => {
    request.onsuccess = () => done(request.result);
    request.onerror = () => failed(request.error);
  });

function open() {
  opened ??= new Promise((done, failed) => {
    const request = indexedDB.open(NAME, 1);
    request.onupgradeneeded = () => request.result.createObjectStore(STORE);
    request.onsuccess = () => done(request.result);
    request.onerror = () => failed(request.error);
  });
  return opened;
}

const keyOf = (day, exercise) => `day${day}/${exercise}`;
const store = async (mode) => (await open()).transaction(STORE, mode).objectStore(STORE);

// Return what is kept of an answer, { source, points, status, version }, or undefined. Rejects if storage is refused.
export const readAnswer = async (day, exercise) => asPromise((await store("readonly")).get(keyOf(day, exercise)));

// Return what is kept of all answers of a day, by exercise.
export async function readDay(day) {
  const answers = await store("readonly");
  const range = IDBKeyRange.bound(keyOf(day, ""), keyOf(day, "\uffff"));
  const [keys, values] = await Promise.all([asPromise(answers.getAllKeys(range)), asPromise(answers.getAll(range))]);
  return Object.fromEntries(keys.map((key, place) => [key.slice(key.indexOf("/") + 1), values[place]]));
}

// Keep an answer and return it with its version. If another tab has kept one since the version `seen`, nothing is
// written, and that one is returned; without `seen` it is replaced. Rejects if storage is full or refused. Other tabs
// hear of what is written.
export async function keepAnswer(day, exercise, answer, seen) {
  const answers = await store("readwrite");
  const last = await asPromise(answers.get(keyOf(day, exercise)));
  const version = last?.version ?? 0;
  if (last && seen !== undefined && version !== seen) return last;
  const kept = { ...answer, version: version + 1 };
  await asPromise(answers.put(kept, keyOf(day, exercise)));
  others?.postMessage({ day, exercise, answer: kept });
  return kept;
}

// Call `listener` with { day, exercise, answer } when another tab keeps an answer.
export const onOtherTab = (listener) => others?.addEventListener("message", ({ data }) => listener(data));
