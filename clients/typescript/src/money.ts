/** Amounts in US dollars, exactly: integers in units of 10^-18, so that sums do not round. */

const DECIMALS = 18;
const UNIT = 10n ** BigInt(DECIMALS);

/** A dollar amount as a caller writes it: `0.02` or `"0.02"`. */
export type UsdAmount = number | string;

/** Parse an amount in US dollars. Throws RangeError. */
export function parseUsd(amount: UsdAmount): bigint {
  const match = /^([0-9]{1,15})(?:\.([0-9]{1,18}))?$/.exec(String(amount).trim());
  if (match === null) {
    throw new RangeError(`${String(amount)} is not an amount in US dollars, such as 0.02 or "0.02"`);
  }
  return BigInt(match[1] ?? "0") * UNIT + BigInt((match[2] ?? "").padEnd(DECIMALS, "0"));
}

/** Convert base units of a dollar token to our units. Throws RangeError for a token of more than 18 decimals. */
export function fromBaseUnits(amount: bigint, decimals: number): bigint {
  if (!Number.isInteger(decimals) || decimals < 0 || decimals > DECIMALS) {
    throw new RangeError(`a token of ${decimals} decimals is not supported; 0 to ${DECIMALS} are`);
  }
  return amount * 10n ** BigInt(DECIMALS - decimals);
}

/** Format an amount as dollars without trailing zeros: `0.01`. */
export function formatUsd(amount: bigint): string {
  const fraction = (amount % UNIT).toString().padStart(DECIMALS, "0").replace(/0+$/, "");
  return `${amount / UNIT}${fraction === "" ? "" : `.${fraction}`}`;
}
