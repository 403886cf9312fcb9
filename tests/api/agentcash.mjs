// What a directory's own code finds in an origin: its warnings, and what it says of each paid route, as JSON.
import * as directory from "@agentcash/discovery";

const [origin] = process.argv.slice(2);
const openApi = (await directory.getOpenAPI(origin)).unwrapOr(null);
const discovered = await directory.discoverOriginSchema({ target: origin });
const warnings = [
  ...directory.getWarningsForOpenAPI(openApi),
  ...directory.getWarningsForL2(directory.checkL2ForOpenAPI(openApi)),
  ...directory.getWarningsForL4(directory.checkL4ForOpenAPI(openApi)),
  ...(await directory.getWarningsForFavicon(origin)).unwrapOr([{ code: "FAVICON_UNCHECKED" }]),
  ...directory.getWarningsForLegacyWellKnown((await directory.probeLegacyWellKnown(origin)).unwrapOr({})),
];

const routes = [];
for (const { path, method } of openApi.routes.filter((route) => route.authMode === "paid")) {
  const url = `${origin}${path}`;
  const probes = (await directory.getProbe(url)).unwrapOr([]);
  const written = directory.getL3ForOpenAPI(openApi, path, method);
  const live = directory.getL3ForProbe(probes, path, method, openApi);
  const asked = directory.validatePaymentRequiredDetailed(live?.paymentRequiredBody);
  const checked = await directory.checkEndpointSchema({ url, probe: true });
  routes.push({
    path,
    warnings: [...directory.getWarningsForL3(written), ...directory.getWarningsForL3(live), ...asked.issues],
    valid: asked.valid,
    written,
    options: live?.paymentOptions,
    methods: checked.advisories?.map(({ method: each, authMode }) => `${each} ${authMode}`),
  });
}
console.log(JSON.stringify({ warnings, routes, discovered }));
