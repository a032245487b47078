// The page of the cards: one after the other, by day. A click or Enter turns a card. Nothing is kept.

const decks = {};
course.deck = (day, cards) => {
  decks[day] = cards;
};

class FlashCards {
  constructor(frame) {
    this.frame = frame;
    [this.choice, this.state] = frame.querySelectorAll("select, [role=status]");
    this.card = frame.querySelector(".course-flash-card");
    this.sides = [...this.card.children];
    this.cards = [];
    this.at = 0;
    this.turned = false;
    this.bindKeys();
    frame
      .querySelectorAll("button")
      .forEach((button, place) => button.addEventListener("click", () => this.go(place ? 1 : -1)));
    this.choice.addEventListener("change", () => this.choose());
    this.choose();
  }

  bindKeys() {
    this.card.addEventListener("click", () => {
      if (!String(getSelection())) this.turn();
    });
    // Before anything has the focus, Enter turns the card too.
    addEventListener("keydown", ({ key }) => {
      if (key === "Enter" && this.cards.length && document.activeElement === document.body) this.turn();
    });
    const steps = { ArrowLeft: -1, ArrowRight: 1 };
    this.card.addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.turn();
      else if (event.target === this.card && event.key in steps) this.go(steps[event.key]);
      else return;
      event.preventDefault();
    });
  }

  show() {
    const [kind] = this.cards[this.at];
    this.sides.forEach((side, place) => {
      side.inert = Boolean(place) !== this.turned;
    });
    this.state.textContent = `${this.turned ? "Answer" : "Card"} ${this.at + 1} of ${this.cards.length}, ${kind}`;
    course.fit();
  }

  turn() {
    this.turned = !this.turned;
    this.card.classList.add("course-flash-turns");
    this.show();
  }

  go(step) {
    this.at = (this.at + step + this.cards.length) % this.cards.length;
    this.turned = false;
    // a new card is there at once: it would show its answer in turning
    this.card.classList.remove("course-flash-turns");
    this.sides.forEach((side, place) => {
      side.innerHTML = this.cards[this.at][1 + place];
    });
    this.show();
  }

  async choose() {
    const chosen = this.choice.value;
    const days = [...this.choice.options].map(({ value }) => value).filter(Boolean);
    const wanted = chosen ? [chosen] : days;
    await Promise.all(wanted.map((day) => course.load(`cards/day${day}.js`)));
    if (this.choice.value !== chosen) return;
    this.cards = wanted.flatMap((day) => decks[day]);
    this.at = 0;
    this.frame.hidden = false;
    this.go(0);
  }
}

addEventListener("DOMContentLoaded", () => {
  new FlashCards(document.getElementById("course-flash"));
});
