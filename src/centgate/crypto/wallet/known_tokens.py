"""Well-known tokens by chain.

Their metadata needs no query, other tokens imitate them, and their balances can be read from a node where no
source lists a wallet's tokens. An address on the list is never reported as suspicious. Symbols are those in
common use; names are those of the tokens themselves. They were checked against the token lists of Uniswap and
SushiSwap, and the others by the checksum of the address.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from msgspec import Struct


class KnownToken(Struct, frozen=True):
    """Token identified by its address."""

    address: str
    """Lower case."""
    symbol: str
    decimals: int
    name: str


def find_known_token(chain_id: int, address: str) -> KnownToken | None:
    """Return the well-known token at an address (lower case), or None."""
    return KNOWN_TOKENS.get(chain_id, _NO_TOKENS).get(address)


def _build_table(*rows: tuple[str, str, int, str]) -> Mapping[str, KnownToken]:
    return MappingProxyType({row[0]: KnownToken(*row) for row in rows})


_NO_TOKENS: Mapping[str, KnownToken] = MappingProxyType({})
_TEST_USDC = _build_table(("0x036cbd53842c5426634e7929541ec2318f3dcf7e", "USDC", 6, "USDC"))

NATIVE_COIN_ADDRESSES = frozenset(
    {
        "0x0000000000000000000000000000000000000000",
        "0x0000000000000000000000000000000000001010",  # POL on polygon, as an ERC-20
        "0xdeaddeaddeaddeaddeaddeaddeaddeaddead0000",  # ETH on optimism and base, as an ERC-20
        "0xeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee",
    }
)
"""Addresses under which sources list the native coin among the tokens, which would count it twice."""

KNOWN_TOKENS: Mapping[int, Mapping[str, KnownToken]] = {
    1: _build_table(
        ("0xc02aaa39b223fe8d0a0e5c4f27ead9083c756cc2", "WETH", 18, "Wrapped Ether"),
        ("0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48", "USDC", 6, "USD Coin"),
        ("0xdac17f958d2ee523a2206206994597c13d831ec7", "USDT", 6, "Tether USD"),
        ("0x6b175474e89094c44da98b954eedeac495271d0f", "DAI", 18, "Dai Stablecoin"),
        ("0xdc035d45d973e3ec169d2276ddab16f1e407384f", "USDS", 18, "USDS Stablecoin"),
        ("0x4c9edd5852cd905f086c759e8383e09bff1e68b3", "USDe", 18, "USDe"),
        ("0x9d39a5de30e57443bff2a8307a4256c8797a3497", "sUSDe", 18, "Staked USDe"),
        ("0x6c3ea9036406852006290770bedfcaba0e23a0e8", "PYUSD", 6, "PayPal USD"),
        ("0xc5f0f7b66764f6ec8c8dff7ba683102295e16409", "FDUSD", 18, "First Digital USD"),
        ("0x40d16fc0246ad3160ccc09b8d0d3a2cd28ae6c2f", "GHO", 18, "Gho Token"),
        ("0xf939e0a03fb07f59a73314e73794be0e57ac1b4e", "crvUSD", 18, "Curve.Fi USD Stablecoin"),
        ("0x853d955acef822db058eb8505911ed77f175b99e", "FRAX", 18, "Frax"),
        ("0x4fabb145d64652a948d72533023f6e7a623c7c53", "BUSD", 18, "Binance USD"),
        ("0x0000000000085d4780b73119b644ae5ecd22b376", "TUSD", 18, "TrueUSD"),
        ("0x1abaea1f7c830bd89acc67ec4af516284b1bc33c", "EURC", 6, "Euro Coin"),
        ("0x2260fac5e5542a773aa44fbcfedf7c193bc2c599", "WBTC", 8, "Wrapped BTC"),
        ("0xcbb7c0000ab88b473b1f5afd9ef808440eed33bf", "cbBTC", 8, "Coinbase Wrapped BTC"),
        ("0xae7ab96520de3a18e5e111b5eaab095312d7fe84", "stETH", 18, "Liquid staked Ether 2.0"),
        ("0x7f39c581f595b53c5cb19bd0b3f8da6c935e2ca0", "wstETH", 18, "Wrapped liquid staked Ether 2.0"),
        ("0xae78736cd615f374d3085123a210448e74fc6393", "rETH", 18, "Rocket Pool ETH"),
        ("0xbe9895146f7af43049ca1c1ae358b0541ea49704", "cbETH", 18, "Coinbase Wrapped Staked ETH"),
        ("0xcd5fe23c85820f7b72d0926fc9b05b43e359b7ee", "weETH", 18, "Wrapped eETH"),
        ("0x514910771af9ca656af840dff83e8264ecf986ca", "LINK", 18, "ChainLink Token"),
        ("0x1f9840a85d5af5bf1d1762f925bdaddc4201f984", "UNI", 18, "Uniswap"),
        ("0x7fc66500c84a76ad7e9c93437bfc5ac33e2ddae9", "AAVE", 18, "Aave Token"),
        ("0x9f8f72aa9304c8b593d555f12ef6589cc3a579a2", "MKR", 18, "Maker"),
        ("0x5a98fcbea516cf06857215779fd812ca3bef1b32", "LDO", 18, "Lido DAO Token"),
        ("0xd533a949740bb3306d119cc777fa900ba034cd52", "CRV", 18, "Curve DAO Token"),
        ("0xc00e94cb662c3520282e6f5717214004a7f26888", "COMP", 18, "Compound"),
        ("0xc011a73ee8576fb46f5e1c5751ca3b9fe0af2a6f", "SNX", 18, "Synthetix Network Token"),
        ("0xc944e90c64b2c07662a292be6244bdf05cda44a7", "GRT", 18, "Graph Token"),
        ("0xc18360217d8f7ab5e7c516566761ea12ce7f9d72", "ENS", 18, "Ethereum Name Service"),
        ("0x57e114b691db790c35207b2e685d4a43181e6061", "ENA", 18, "ENA"),
        ("0xfaba6f8e4a5e8ab82f62fe7c39859fa577269be3", "ONDO", 18, "Ondo"),
        ("0x95ad61b0a150d79219dcf64e1e6cc01f0b64c4ce", "SHIB", 18, "SHIBA INU"),
        ("0x6982508145454ce325ddbe47a25d4ec3d2311933", "PEPE", 18, "Pepe"),
        ("0x4d224452801aced8b2f0aebe155379bb5d594381", "APE", 18, "ApeCoin"),
        ("0x455e53cbb86018ac2b8092fdcd39d8444affc3f6", "POL", 18, "Polygon Ecosystem Token"),
        ("0x7d1afa7b718fb893db30a3abc0cfc608aacfebb0", "MATIC", 18, "Matic Token"),
        ("0xb50721bcf8d664c30412cfbc6cf7a15145234ad1", "ARB", 18, "Arbitrum"),
        ("0x0bc529c00c6401aef6d220be8c6ea1667f6ad93e", "YFI", 18, "yearn.finance"),
        ("0x6c3f90f043a72fa612cbac8115ee7e52bde6e490", "3Crv", 18, "Curve.fi DAI/USDC/USDT"),
        ("0x06325440d014e39736583c165c2963ba99faf14e", "steCRV", 18, "Curve.fi ETH/stETH"),
        ("0xa354f35829ae975e850e23e9615b11da1b3dc4de", "yvUSDC", 6, "USDC yVault"),
        ("0xda816459f1ab5631232fe5e97a05bbbb94970c95", "yvDAI", 18, "DAI yVault"),
        ("0xfe0c30065b384f05761f15d0cc899d4f9f9cc0eb", "ETHFI", 18, "ether.fi governance token"),
        ("0x35fa164735182de50811e8e2e824cfb9b6118ac2", "eETH", 18, "ether.fi ETH"),
        ("0xa0b73e1ff0b80914ab6fe0444e65848c4c34450b", "CRO", 8, "Crypto.com Coin"),
        ("0xaea46a60368a7bd060eec7df8cba43b7ef41ad85", "FET", 18, "Fetch"),
        ("0xb8c77482e45f1f44de1745f52c74426c631bdd52", "BNB", 18, "BNB"),
        ("0x418d75f65a02b3d53b2418fb8e1fe493759c7605", "WBNB", 18, "Wrapped BNB (Wormhole)"),
        ("0x7c9f4c87d911613fe9ca58b579f737911aad2d43", "WMATIC", 18, "Wrapped Matic (Wormhole)"),
        ("0x89d24a6b4ccb1b6faa2625fe562bdd9a23260359", "SAI", 18, "Dai Stablecoin v1.0"),
    ),
    8453: _build_table(
        ("0x4200000000000000000000000000000000000006", "WETH", 18, "Wrapped Ether"),
        ("0x833589fcd6edb6e08f4c7c32d4f71b54bda02913", "USDC", 6, "USD Coin"),
        ("0xd9aaec86b65d86f6a7b5b1b0c42ffa531710b6ca", "USDbC", 6, "USD Base Coin"),
        ("0xfde4c96c8593536e31f229ea8f37b2ada2699bb2", "USDT", 6, "Tether USD"),
        ("0x50c5725949a6f0c72e6c4a641f24049a917db0cb", "DAI", 18, "Dai Stablecoin"),
        ("0x820c137fa70c8691f0e44dc420a5e53c168921dc", "USDS", 18, "USDS Stablecoin"),
        ("0x60a3e35cc302bfa44cb288bc5a4f316fdb1adb42", "EURC", 6, "EURC"),
        ("0xcbb7c0000ab88b473b1f5afd9ef808440eed33bf", "cbBTC", 8, "Coinbase Wrapped BTC"),
        ("0x0555e30da8f98308edb960aa94c0db47230d2b9c", "WBTC", 8, "Wrapped BTC"),
        ("0x236aa50979d5f3de3bd1eeb40e81137f22ab794b", "tBTC", 18, "Base tBTC v2"),
        ("0x2ae3f1ec7f1f5012cfeab0185bfc7aa3cf0dec22", "cbETH", 18, "Coinbase Wrapped Staked ETH"),
        ("0xc1cba3fcea344f92d9239c08c0568f6f2f0ee452", "wstETH", 18, "Wrapped liquid staked Ether 2.0"),
        ("0x04c0599ae5a44757c0af6f9ec3b93da8976c150a", "weETH", 18, "Wrapped eETH"),
        ("0xb6fe221fe9eef5aba221c348ba20a1bf5e73624c", "rETH", 18, "Rocket Pool ETH"),
        ("0x940181a94a35a4569e4529a3cdfb74e38fd98631", "AERO", 18, "Aerodrome"),
        ("0xbaa5cc21fd487b8fcc2f632f3f4e8d37262a0842", "MORPHO", 18, "Morpho Token"),
        ("0x0b3e328455c4059eeb9e3f84b5543f74e24e7e1b", "VIRTUAL", 18, "Virtual Protocol"),
        ("0x4ed4e862860bed51a9570b96d89af5e1b0efefed", "DEGEN", 18, "Degen"),
        ("0x532f27101965dd16442e59d40670faf5ebb142e4", "BRETT", 18, "Brett"),
        ("0xac1bd2486aaf3b5c0fc3fd868558b082a531b2b4", "TOSHI", 18, "Toshi"),
        ("0xa88594d404727625a9437c3f886c7643872296ae", "WELL", 18, "WELL"),
        ("0x9e1028f5f1d5ede59748ffcee5532509976840e0", "COMP", 18, "Compound"),
        ("0xc3de830ea07524a0761646a6a4e4be0e114a3c83", "UNI", 18, "Uniswap"),
        ("0x88fb150bdc53a65fe94dea0c9ba0a6daf8c6e196", "LINK", 18, "ChainLink Token"),
        ("0x6985884c4392d348587b19cb9eaaf157f13271cd", "ZRO", 18, "LayerZero"),
        ("0x5d3a1ff2b6bab83b63cd9ad0787074081a52ef34", "USDe", 18, "USDe"),
    ),
    56: _build_table(
        ("0xbb4cdb9cbd36b01bd1cbaebf2de08d9173bc095c", "WBNB", 18, "Wrapped BNB"),
        ("0x55d398326f99059ff775485246999027b3197955", "USDT", 18, "Tether USD"),
        ("0x8ac76a51cc950d9822d68b83fe1ad97b32cd580d", "USDC", 18, "USD Coin"),
        ("0xe9e7cea3dedca5984780bafc599bd69add087d56", "BUSD", 18, "BUSD Token"),
        ("0x1af3f329e8be154074d8769d1ffa4ee058b1dbc3", "DAI", 18, "Dai Token"),
        ("0xc5f0f7b66764f6ec8c8dff7ba683102295e16409", "FDUSD", 18, "First Digital USD"),
        ("0x40af3827f39d0eacbf4a168f8d4ee67c121d11c9", "TUSD", 18, "TrueUSD"),
        ("0x8d0d000ee44948fc98c9b98a4fa4921476f08b0d", "USD1", 18, "World Liberty Financial USD"),
        ("0x2170ed0880ac9a755fd29b2688956bd959f933f8", "ETH", 18, "Ethereum Token"),
        ("0xa2e3356610840701bdf5611a53974510ae27e2e1", "wBETH", 18, "Wrapped Beacon ETH"),
        ("0x7130d2a12b9bcbfae4f2634d864a1ee1ce3ead9c", "BTCB", 18, "BTCB Token"),
        ("0x0e09fabb73bd3ade0a17ecc321fd13a19e81ce82", "Cake", 18, "PancakeSwap Token"),
        ("0x1d2f0da169ceb9fc7b3144628db156f3f6c60dbe", "XRP", 18, "XRP Token"),
        ("0x3ee2200efb3400fabb9aacf31297cbdd1d435d47", "ADA", 18, "Cardano Token"),
        ("0xba2ae424d960c26247dd6c32edc70b295c744c43", "DOGE", 8, "Dogecoin"),
        ("0x570a5d26f7765ecb712c0924e4de545b89fd43df", "SOL", 18, "SOLANA"),
        ("0xce7de646e7208a4ef112cb6ed5038fa6cc6b12e3", "TRX", 6, "TRON"),
        ("0x1ce0c2827e2ef14d5c4f29a091d735a204794041", "AVAX", 18, "Avalanche"),
        ("0x7083609fce4d1d8dc0c979aab8c869ea2c873402", "DOT", 18, "Polkadot Token"),
        ("0x4338665cbb7b2485a8855a139b75d5e34ab0db94", "LTC", 18, "Litecoin Token"),
        ("0x8ff795a6f4d97e7887c79bea79aba5cc76444adf", "BCH", 18, "Bitcoin Cash Token"),
        ("0x0d8ce2a99bb6e3b7db580ed848240e4a0f9ae153", "FIL", 18, "Filecoin"),
        ("0x0eb3a705fc54725037cc9e008bdede697f62f335", "ATOM", 18, "Cosmos Token"),
        ("0xf8a0bf9cf54bb92f17374d9e9a321e6a111a51bd", "LINK", 18, "ChainLink Token"),
        ("0xbf5140a22578168fd562dccf235e5d43a02ce9b1", "UNI", 18, "Uniswap"),
        ("0xa2b726b1145a4773f68593cf171187d8ebe4d495", "INJ", 18, "Injective Protocol"),
        ("0x2859e4544c4bb03966803b044a93563bd2d0dd4d", "SHIB", 18, "SHIBA INU"),
        ("0xfb5b838b6cfeedc2873ab27866079ac55363d37e", "FLOKI", 9, "FLOKI"),
        ("0x4b0f1812e5df2a09796481ff14017e6005508003", "TWT", 18, "Trust Wallet"),
        ("0xcf6bb5389c92bdda8a3747ddb454cb7a64626c63", "XVS", 18, "Venus"),
        ("0xcc42724c6683b7e57334c4e856f4c9965ed682bd", "MATIC", 18, "Matic Token"),
        ("0x4db5a66e937a9f4473fa95b1caf1d1e1d62e29ea", "WETH", 18, "Ether (Wormhole)"),
        ("0x0555e30da8f98308edb960aa94c0db47230d2b9c", "WBTC", 8, "Wrapped BTC"),
        ("0x26c5e01524d2e6280a48f2c50ff6de7e52e9611c", "wstETH", 18, "Wrapped liquid staked Ether 2.0"),
        ("0x5d3a1ff2b6bab83b63cd9ad0787074081a52ef34", "USDe", 18, "USDe"),
        ("0xa050ffb3eeb8200eeb7f61ce34ff644420fd3522", "ARB", 18, "Arbitrum"),
        ("0x170c84e3b1d282f9628229836086716141995200", "OP", 18, "Optimism"),
    ),
    137: _build_table(
        ("0x0d500b1d8e8ef31e21c99d1db9a6444d3adf1270", "WPOL", 18, "Wrapped Polygon Ecosystem Token"),
        ("0x7ceb23fd6bc0add59e62ac25578270cff1b9f619", "WETH", 18, "Wrapped Ether"),
        ("0x3c499c542cef5e3811e1192ce70d8cc03d5c3359", "USDC", 6, "USD Coin"),
        ("0x2791bca1f2de4661ed88a30c99a7a9449aa84174", "USDC.e", 6, "USD Coin (PoS)"),
        ("0xc2132d05d31c914a87c6611c10748aeb04b58e8f", "USDT", 6, "Tether USD"),
        ("0x8f3cf7ad23cd3cadbd9735aff958023239c6a063", "DAI", 18, "Dai Stablecoin"),
        ("0x45c32fa6df82ead1e2ef74d17b76547eddfaff89", "FRAX", 18, "Frax"),
        ("0xa3fa99a148fa48d14ed51d610c367c61876997f1", "miMATIC", 18, "miMATIC"),
        ("0x1bfd67037b42cf73acf2047067bd4f2c47d9bfd6", "WBTC", 8, "Wrapped BTC"),
        ("0x03b54a6e9a984069379fae1a4fc4dbae93b3bccd", "wstETH", 18, "Wrapped liquid staked Ether 2.0"),
        ("0x3a58a54c066fdc0f2d55fc9c89f0415c92ebf3c4", "stMATIC", 18, "Staked MATIC"),
        ("0xfa68fb4628dff1028cfec22b4162fccd0d45efb6", "MaticX", 18, "Liquid Staking Matic"),
        ("0x53e0bca35ec356bd5dddfebbd1fc0fd03fabad39", "LINK", 18, "ChainLink Token"),
        ("0xd6df932a45c0f255f85145f286ea0b292b21c90b", "AAVE", 18, "Aave"),
        ("0xb33eaad8d922b1083446dc23f610c2567fb5180f", "UNI", 18, "Uniswap"),
        ("0x172370d5cd63279efa6d502dab29171933a610af", "CRV", 18, "CRV"),
        ("0x9a71012b13ca4d3d0cdc72a177df3ef03b0e76a3", "BAL", 18, "Balancer"),
        ("0x8505b9d2254a7ae468c0e9dd10ccea3a837aef5c", "COMP", 18, "Compound"),
        ("0x50b728d8d964fd00c2d0aad81718b71311fef68a", "SNX", 18, "Synthetix Network Token"),
        ("0x5fe2b58c013d7601147dcdd68c143a77499f5531", "GRT", 18, "Graph Token"),
        ("0xc3c7d422809852031b44ab29eec9f1eff2a58756", "LDO", 18, "Lido DAO Token"),
        ("0x0b3f868e0be5597d5db7feb59e1cadbb0fdda50a", "SUSHI", 18, "SushiToken"),
        ("0xb5c064f955d8e7f38fe0460c556a72987494ee17", "QUICK", 18, "QuickSwap"),
        ("0x385eeac5cb85a38a9a07a70c73e0a3271cfb54a7", "GHST", 18, "Aavegotchi GHST Token"),
        ("0xbbba073c31bf03b8acf7c28ef0738decf3695683", "SAND", 18, "SAND"),
        ("0xa1c57f48f0deb89f569dfbe6e2b7f46d33606fd4", "MANA", 18, "Decentraland MANA"),
        ("0xdf7837de1f2fa4631d716cf2502f8b230f1dcc32", "TEL", 2, "Telcoin"),
        ("0xb0897686c545045afc77cf20ec7a532e3120e0f1", "LINK", 18, "ChainLink Token"),
        ("0x3ba4c387f786bfee076a58914f5bd38d668b42c3", "BNB", 18, "BNB (PoS)"),
        ("0xdab529f40e671a1d4bf91361c21bf9f0c9712ab7", "BUSD", 18, "(PoS) Binance USD"),
        ("0x9c9e5fd8bbc25984b178fdce6117defa39d2db39", "BUSD", 18, "BUSD Token"),
        ("0x6f8a06447ff6fcf75d803135a7de15ce88c1d4ec", "SHIB", 18, "SHIBA INU (PoS)"),
    ),
    42161: _build_table(
        ("0x82af49447d8a07e3bd95bd0d56f35241523fbab1", "WETH", 18, "Wrapped Ether"),
        ("0xaf88d065e77c8cc2239327c5edb3a432268e5831", "USDC", 6, "USD Coin"),
        ("0xff970a61a04b1ca14834a43f5de4533ebddb5cc8", "USDC.e", 6, "Bridged USDC"),
        ("0xfd086bc7cd5c481dcc9c85ebe478a1c0b69fcbb9", "USDT0", 6, "USDT0"),
        ("0xda10009cbd5d07dd0cecc66161fc93d7c9000da1", "DAI", 18, "Dai Stablecoin"),
        ("0x5d3a1ff2b6bab83b63cd9ad0787074081a52ef34", "USDe", 18, "USDe"),
        ("0x17fc002b466eec40dae837fc4be5c67993ddbd6f", "FRAX", 18, "Frax"),
        ("0x93b346b6bc2548da6a1e7d98e9a421b42541425b", "LUSD", 18, "LUSD Stablecoin"),
        ("0x2f2a2543b76a4166549f7aab2e75bef0aefc5b0f", "WBTC", 8, "Wrapped BTC"),
        ("0xcbb7c0000ab88b473b1f5afd9ef808440eed33bf", "cbBTC", 8, "Coinbase Wrapped BTC"),
        ("0x5979d7b546e38e414f7e9822514be443a4800529", "wstETH", 18, "Wrapped liquid staked Ether 2.0"),
        ("0xec70dcb4a1efa46b8f2d97c310c9c4790ba5ffa8", "rETH", 18, "Rocket Pool ETH"),
        ("0x35751007a407ca6feffe80b3cb397736d2cf4dbe", "weETH", 18, "Wrapped eETH"),
        ("0x912ce59144191c1204e64559fe8253a0e49e6548", "ARB", 18, "Arbitrum"),
        ("0xf97f4df75117a78c1a5a0dbb814af92458539fb4", "LINK", 18, "ChainLink Token"),
        ("0xfa7f8980b0f1e64a2062791cc3b0871572f1f7f0", "UNI", 18, "Uniswap"),
        ("0xba5ddd1f9d7f570dc94a51479a000e3bce967196", "AAVE", 18, "Aave Token"),
        ("0xfc5a1a6eb076a2c7ad06ed22c90d7e710e35ad0a", "GMX", 18, "GMX"),
        ("0x0c880f6761f1af8d9aa9c466984b80dab9a8c9e8", "PENDLE", 18, "Pendle"),
        ("0x539bde0d7dbd336b79148aa742883198bbf60342", "MAGIC", 18, "MAGIC"),
        ("0x18c11fd286c5ec11c3b683caa813b77f5163a122", "GNS", 18, "Gains Network"),
        ("0x11cdb42b0eb46d95f990bedd4695a6e3fa034978", "CRV", 18, "Curve DAO Token"),
        ("0x354a6da3fcde098f8389cad84b0182725c6c91de", "COMP", 18, "Compound"),
        ("0x040d1edc9569d4bab2d15287dc5a4f10f56a56b8", "BAL", 18, "Balancer"),
        ("0x13ad51ed4f1b7e9dc168d8a00cb3f4ddd85efa60", "LDO", 18, "Lido DAO Token"),
        ("0x2e9a6df78e42a30712c10a9dc4b1c8656f8f2879", "MKR", 18, "Maker"),
        ("0xd4d42f0b6def4ce0383636770ef773390d85c61a", "SUSHI", 18, "SushiToken"),
        ("0x07d65c18cecba423298c0aeb5d2beded4dfd5736", "ETHFI", 18, "ether.fi governance token"),
        ("0x6985884c4392d348587b19cb9eaaf157f13271cd", "ZRO", 18, "LayerZero"),
        ("0x6491c05a82219b8d1479057361ff1654749b876b", "USDS", 18, "USDS Stablecoin"),
        ("0x46850ad61c2b7d64d08c9c754f45254596696984", "PYUSD", 6, "PayPal USD"),
        ("0x31190254504622cefdfa55a7d3d272e6462629a2", "BUSD", 18, "Binance USD"),
        ("0x561877b6b3dd7651313794e5f2894b2f18be0766", "MATIC", 18, "Matic Token"),
    ),
    10: _build_table(
        ("0x4200000000000000000000000000000000000006", "WETH", 18, "Wrapped Ether"),
        ("0x0b2c639c533813f4aa9d7837caf62653d097ff85", "USDC", 6, "USD Coin"),
        ("0x7f5c764cbc14f9669b88837ca1490cca17c31607", "USDC.e", 6, "Bridged USDC"),
        ("0x94b008aa00579c1307b0ef2c499ad98a8ce58e58", "USDT", 6, "Tether USD"),
        ("0x01bff41798a0bcf287b996046ca68b395dbc1071", "USDT0", 6, "USDT0"),
        ("0xda10009cbd5d07dd0cecc66161fc93d7c9000da1", "DAI", 18, "Dai Stablecoin"),
        ("0x8c6f28f2f1a3c87f0f938b96d27520d9751ec8d9", "sUSD", 18, "Synth sUSD"),
        ("0xc40f949f8a4e094d1b49a23ea9241d289b7b2819", "LUSD", 18, "LUSD Stablecoin"),
        ("0x2e3d870790dc77a83dd1d18184acc7439a53f475", "FRAX", 18, "Frax"),
        ("0x68f180fcce6836688e9084f035309e29bf0a2095", "WBTC", 8, "Wrapped BTC"),
        ("0x1f32b1c2345538c0c6f582fcb022739c4a194ebb", "wstETH", 18, "Wrapped liquid staked Ether 2.0"),
        ("0x9bcef72be871e61ed4fbbc7630889bee758eb81d", "rETH", 18, "Rocket Pool ETH"),
        ("0xaddb6a0412de1ba0f936dcaeb8aaa24578dcf3b2", "cbETH", 18, "Coinbase Wrapped Staked ETH"),
        ("0x5a7facb970d094b6c7ff1df0ea68d99e6e73cbff", "weETH", 18, "Wrapped eETH"),
        ("0x4200000000000000000000000000000000000042", "OP", 18, "Optimism"),
        ("0x9560e827af36c94d2ac33a39bce1fe78631088db", "VELO", 18, "Velodrome"),
        ("0xdc6ff44d5d932cbd77b52e5612ba0529dc6226f1", "WLD", 18, "Worldcoin"),
        ("0x350a791bfc2c21f9ed5d10980dad2e2638ffa7f6", "LINK", 18, "ChainLink Token"),
        ("0x8700daec35af8ff88c16bdf0418774cb3d7599b4", "SNX", 18, "Synthetix Network Token"),
        ("0x6fd9d7ad17242c41f7131d257212c54a0e816691", "UNI", 18, "Uniswap"),
        ("0x76fb31fb4af56892a25e32cfc43de717950c9278", "AAVE", 18, "Aave Token"),
        ("0x0994206dfe8de6ec6920ff4d779b0d950605fb53", "CRV", 18, "Curve DAO Token"),
        ("0xfdb794692724153d1488ccdbe0c56c252596735f", "LDO", 18, "Lido DAO Token"),
        ("0xfe8b128ba8c78aabc59d4c64cee7ff28e9379921", "BAL", 18, "Balancer"),
        ("0x9e1028f5f1d5ede59748ffcee5532509976840e0", "PERP", 18, "Perpetual"),
        ("0x65559aa14915a70190438ef90104769e5e890a00", "ENS", 18, "Ethereum Name Service"),
        ("0x4f13a96ec5c4cf34e442b46bbd98a0791f20edc3", "USDS", 18, "USDS Stablecoin"),
        ("0x5d3a1ff2b6bab83b63cd9ad0787074081a52ef34", "USDe", 18, "USDe"),
        ("0x9c9e5fd8bbc25984b178fdce6117defa39d2db39", "BUSD", 18, "Binance USD"),
    ),
    31337: _TEST_USDC,
    84532: _TEST_USDC,
}
"""Well-known tokens by chain id, then by address."""
