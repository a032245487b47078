// Numbers as text, the same as number_text.py gives: ties go to the even digit, as Python rounds them.

import { minus } from "./dom.js";

const roundedText = (rough, exact, keep) => {
  if (!/^\.?50*$/.test(exact.slice(keep))) return rough;
  const down = exact.slice(0, keep);
  return Number(down.at(-1)) % 2 ? rough : down;
};
export const fixedText = (size, decimals) => {
  const exact = size.toFixed(100);
  return roundedText(size.toFixed(decimals), exact, exact.indexOf(".") + (decimals && decimals + 1));
};
export const scientific = (size, decimals) => {
  const [rough, exponent] = size.toExponential(decimals).split("e");
  const exact = size.toExponential(100).split("e")[0];
  return [roundedText(rough, exact, decimals + 2).replace(/\.?0+$/, ""), Number(exponent)];
};

// A number for people: four decimals below 10 and fewer above.
export function numberText(value) {
  if (Number.isNaN(value)) return "nan";
  const sign = value < 0 ? "−" : "";
  const size = Math.abs(value);
  if (size === Infinity) return `${sign}∞`;
  if (size < 1e-12) return "0";
  if (size < 5e-5 || size >= 1e5) {
    const [mantissa, exponent] = scientific(size, 3);
    return `${sign}${mantissa}e${minus(String(exponent))}`;
  }
  return sign + fixedText(size, size < 10 ? 4 : size < 100 ? 3 : size < 1000 ? 2 : 1).replace(/\.?0+$/, "");
}
// Seven digits, where four are not enough to tell two numbers apart.
export function sevenDigits(value) {
  const size = Math.abs(value);
  const sign = value < 0 ? "−" : "";
  if (!size || !Number.isFinite(size)) return numberText(value);
  const exponent = Number(size.toExponential(6).split("e")[1]);
  if (exponent >= -4 && exponent < 7) return sign + fixedText(size, 6 - exponent).replace(/\.?0*$/, "");
  const text = String(Math.abs(exponent)).padStart(2, "0");
  return `${sign}${scientific(size, 6)[0]}e${exponent < 0 ? "−" : "+"}${text}`;
}
export const inBrackets = (text) => (text.startsWith("−") ? `(${text})` : text);

// As `three_decimals` in number_text.py: a number for a table.
export function threeDecimals(value) {
  const size = Math.abs(value);
  if (size < 1e-12) return "0.000";
  return size >= 0.0005 && size < 1000 ? `${value < 0 ? "−" : ""}${fixedText(size, 3)}` : numberText(value);
}

// As `short` in number_text.py: two decimals. hair: what is added before rounding.
export function shortText(value, hair = 1e-9) {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "NaN" : value > 0 ? "∞" : "−∞";
  const text = fixedText(Math.abs(value + hair), 2);
  return value + hair < 0 && text !== "0.00" ? `−${text}` : text;
}
