// The page of the cards: one after the other, by day. A click or Enter turns a card. Nothing is kept.
(() => {
  const decks = {};
  course.deck = (day, cards) => {
    decks[day] = cards;
  };

  addEventListener("DOMContentLoaded", () => {
    const frame = document.getElementById("course-flash");
    const [choice, said] = frame.querySelectorAll("select, [role=status]");
    const card = frame.querySelector(".course-flash-card");
    const sides = [...card.children];
    let cards = [];
    let at = 0;
    let turned = false;

    function show() {
      const [kind] = cards[at];
      sides.forEach((side, place) => {
        side.inert = Boolean(place) !== turned;
      });
      said.textContent = `${turned ? "Answer" : "Card"} ${at + 1} of ${cards.length}, ${kind}`;
      course.fit();
    }
    function turn() {
      turned = !turned;
      card.classList.add("course-flash-turns");
      show();
    }
    function go(step) {
      at = (at + step + cards.length) % cards.length;
      turned = false;
      card.classList.remove("course-flash-turns"); // a new card is there at once: it would show its answer while it turned
      sides.forEach((side, place) => {
        side.innerHTML = cards[at][1 + place];
      });
      show();
    }
    async function choose() {
      const chosen = choice.value;
      const days = [...choice.options].map(({ value }) => value).filter(Boolean);
      const wanted = chosen ? [chosen] : days;
      await Promise.all(wanted.map((day) => course.load(`cards/day${day}.js`)));
      if (choice.value !== chosen) return;
      cards = wanted.flatMap((day) => decks[day]);
      at = 0;
      frame.hidden = false;
      go(0);
    }

    card.addEventListener("click", () => {
      if (!String(getSelection())) turn();
    });
    // Before anything has the focus, Enter turns the card too.
    addEventListener("keydown", ({ key }) => {
      if (key === "Enter" && cards.length && document.activeElement === document.body) turn();
    });
    const steps = { ArrowLeft: -1, ArrowRight: 1 };
    card.addEventListener("keydown", (event) => {
      if (event.key === "Enter") turn();
      else if (event.target === card && event.key in steps) go(steps[event.key]);
      else return;
      event.preventDefault();
    });
    frame
      .querySelectorAll("button")
      .forEach((button, place) => button.addEventListener("click", () => go(place ? 1 : -1)));
    choice.addEventListener("change", choose);
    choose();
  });
})();
