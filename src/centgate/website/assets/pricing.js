// The calculator: calls a day on a scale of powers of ten, and what they cost.

const calculator = document.getElementById("calculator");
const calls = document.getElementById("calls");
const cost = document.getElementById("cost");
const priced = document.getElementById("priced"); // only there if prices differ
const grouped = (text) => text.replace(/\B(?=(\d{3})+(?!\d))/g, ","); // Intl takes 200 ms to load on a phone
const whole = (value) => grouped(value.toFixed(2));
const small = (value) => value.toFixed(6).replace(/0{1,4}$/, ""); // a price may have six decimals
const dollars = (value) => `$${value < 1 ? small(value) : whole(value)}`;

// Rounds to two significant digits, as the scale is coarse.
const count = () => +(10 ** calls.value).toPrecision(2);

function show() {
  const day = count() * Number(priced?.value ?? calculator.dataset.price);
  const text = `${grouped(String(count()))} calls a day: ${dollars(day)} a day, ${dollars(day * 30)} a month.`;
  calls.setAttribute("aria-valuetext", `${count()} calls a day`);
  cost.textContent = text;
}

calls.addEventListener("input", show);
priced?.addEventListener("change", show);
calculator.hidden = false;
show();
