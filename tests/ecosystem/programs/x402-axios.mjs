import assert from "node:assert/strict";
import { wrapAxiosWithPayment, x402Client } from "@x402/axios";
import { ExactEvmScheme } from "@x402/evm/exact/client";
import axios from "axios";
import { privateKeyToAccount } from "viem/accounts";
import { QUESTION, TOOL } from "./purchase.mjs";

const [api, key] = process.argv.slice(2);
const client = new x402Client();
client.register("eip155:*", new ExactEvmScheme(privateKeyToAccount(key)));
const paying = wrapAxiosWithPayment(axios.create({ baseURL: api }), client);
const { data } = await paying.post(`/services/${TOOL}`, QUESTION);
assert.equal(data.data.status, "blocked");
console.log("1 answer");
