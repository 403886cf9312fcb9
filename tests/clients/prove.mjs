// Pays one call with the official JavaScript client, and has the official library check what the server signed.
import { wrapFetchWithPayment, x402Client, x402HTTPClient } from "@x402/fetch";
import { ExactEvmScheme } from "@x402/evm/exact/client";
import {
  decodeSignedOffers,
  extractOffersFromPaymentRequired,
  extractReceiptFromResponse,
  findAcceptsObjectFromSignedOffer,
  verifyOfferSignatureEIP712,
  verifyReceiptMatchesOffer,
  verifyReceiptSignatureEIP712,
} from "@x402/extensions/offer-receipt";
import { privateKeyToAccount } from "viem/accounts";

const { CENTGATE_URL, PRIVATE_KEY } = process.env;
const account = privateKeyToAccount(PRIVATE_KEY);
const client = new x402Client();
client.register("eip155:*", new ExactEvmScheme(account));
const http = new x402HTTPClient(client);

const url = `${CENTGATE_URL}/services/phishing-check`;
const body = JSON.stringify({ url: "myetherwallet.cx" });
const request = { method: "POST", headers: { "Content-Type": "application/json" }, body };

const unpaid = await fetch(url, request);
const required = http.getPaymentRequiredResponse((name) => unpaid.headers.get(name), await unpaid.json());
const [offer] = extractOffersFromPaymentRequired(required);
const [decoded] = decodeSignedOffers([offer]);

const response = await wrapFetchWithPayment(fetch, client)(url, request);
const receipt = extractReceiptFromResponse(response);

// Who signed, once for the statement as it came and once for each of its fields changed.
async function signers(verify, signed) {
  const tampered = Object.entries(signed.payload).map(([name, value]) => {
    const payload = { ...signed.payload, [name]: typeof value === "number" ? value + 1 : `${value}1` };
    return verify({ ...signed, payload });
  });
  const found = await Promise.all([verify(signed), ...tampered]);
  return found.map(({ signer }) => signer);
}

console.log(
  JSON.stringify({
    status: response.status,
    offered: await signers(verifyOfferSignatureEIP712, offer),
    received: await signers(verifyReceiptSignatureEIP712, receipt),
    terms: findAcceptsObjectFromSignedOffer(decoded, required.accepts) ?? null,
    accepts: required.accepts,
    matches: verifyReceiptMatchesOffer(receipt, decoded, [account.address]),
    settled: http.getPaymentSettleResponse((name) => response.headers.get(name)),
  }),
);
