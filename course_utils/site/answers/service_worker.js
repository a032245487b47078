// Keeps pages and their Python for the time without a network. The cache belongs to one build, named in its key, and
// each page names the folder of its own Python, so a new page never meets an old judge.

const CACHE = "attention-course/BUILD";
const PYTHON = "/_static/python/"; // a folder in it is named by a hash of all its files, which never change

self.addEventListener("install", () => self.skipWaiting());

self.addEventListener("activate", (event) => {
  const clear = async () => {
    const names = await caches.keys();
    const old = names.filter((name) => name.startsWith("attention-course/") && name !== CACHE);
    await Promise.all(old.map((name) => caches.delete(name)));
    await self.clients.claim();
  };
  event.waitUntil(clear());
});

self.addEventListener("fetch", (event) => {
  const { method, url } = event.request;
  if (method === "GET" && url.startsWith(self.registration.scope)) event.respondWith(answer(event.request));
});

// What the page loaded before this worker was there.
self.addEventListener("message", ({ data }) =>
  caches.open(CACHE).then((cache) => data.forEach((url) => keep(cache, url))),
);

const keep = (cache, url) => cache.add(url).catch(() => {});

async function answer(request) {
  const cache = await caches.open(CACHE);
  const kept = () => cache.match(request, { ignoreSearch: true });
  if (request.url.includes(PYTHON)) {
    const found = await kept();
    if (found) return found;
  }
  try {
    const response = await fetch(request);
    if (response.ok) await cache.put(request, response.clone()).catch(() => {}); // the disk may be full
    return response;
  } catch (error) {
    const found = await kept();
    if (found) return found;
    throw error;
  }
}
