// Bytes in words, as `in_binary_units` of costs/memory.py writes them; ties go to the even digit.

import { fixedText } from "./number_text.js";

const UNITS = ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB"];
export const counted = (count) => count.toLocaleString("en-US", { maximumFractionDigits: 0 });

export function inBinaryUnits(bytes, digits = 3) {
  const magnitude = (amount) => (amount ? Math.floor(Math.log10(amount)) : 0);
  const decimals = (amount) => Math.max(0, digits - 1 - magnitude(amount));
  const rounded = (amount) => Number(fixedText(amount, decimals(amount)));
  let power = 0;
  while (power < UNITS.length - 1 && rounded(bytes / 1024 ** power) >= 1024) power++;
  const amount = rounded(bytes / 1024 ** power);
  return `${power ? fixedText(amount, decimals(amount)) : fixedText(amount, 0)} ${UNITS[power]}`;
}
