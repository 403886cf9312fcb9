"""Limits of a call's work, so that code without end fails as it does on real nodes.

go-ethereum runs all the gas of a call in a fraction of a second; this EVM needs up to ten seconds, and the
client has given up by then. A limit of jumps, without which no code loops, takes the place of its speed.
"""

# py-evm comes without types
# pyright: reportMissingTypeStubs=false

import time
from collections.abc import Callable
from typing import Any, ClassVar

from eth import constants
from eth.abc import ComputationAPI
from eth.exceptions import OutOfGas
from eth.vm import mnemonics, opcode_values
from eth.vm.forks.prague.computation import PragueComputation
from eth.vm.forks.prague.opcodes import PRAGUE_OPCODES
from eth.vm.logic import flow
from eth.vm.opcode import as_opcode

MAX_JUMPS = 10_000
"""Jumps of one contract's code in one call of it, above which it has used up its gas. The largest
bundle of Multicall3 makes 6,000, the simulator of trades less than 2,500, a token some dozens."""
CALL_SECONDS = 5.0
"""go-ethereum's default of --rpc.evmtimeout: https://geth.ethereum.org/docs/fundamentals/command-line-options.
Here of processor time, as other programs do not make a call longer."""
_JUMPS_PER_CHECK = 1_000


class CallTimeout(Exception):
    """A call took too long; the message is go-ethereum's (`doCall` in internal/ethapi/api.go)."""


class CallClock:
    """Processor time of one call, from its start."""

    def __init__(self) -> None:
        self._end = time.thread_time() + CALL_SECONDS

    def check(self) -> None:
        """Raise `CallTimeout` if the time is over."""
        if time.thread_time() > self._end:
            raise CallTimeout(f"execution aborted (timeout = {CALL_SECONDS:g}s)")


def _count_jumps(jump: Callable[[ComputationAPI], None]) -> Callable[["LimitedComputation"], None]:
    def run(computation: "LimitedComputation") -> None:
        jump(computation)
        computation.count_jump()

    return run


class LimitedComputation(PragueComputation):
    """Execution of one contract's code; limited if its state has a `call_clock`, as those of calls have."""

    opcodes: ClassVar = {
        **PRAGUE_OPCODES,
        opcode_values.JUMP: as_opcode(_count_jumps(flow.jump), mnemonics.JUMP, constants.GAS_MID),
        opcode_values.JUMPI: as_opcode(_count_jumps(flow.jumpi), mnemonics.JUMPI, constants.GAS_HIGH),
    }

    def __init__(self, state: Any, *args: Any) -> None:
        super().__init__(state, *args)
        self._clock: CallClock | None = state.call_clock
        self._jump_count = 0
        if self._clock:
            self._clock.check()

    def count_jump(self) -> None:
        """Count a jump. Raises `OutOfGas` at the limit, `CallTimeout` if the call's time is over."""
        if self._clock is None:
            return
        self._jump_count += 1
        if self._jump_count > MAX_JUMPS:
            raise OutOfGas(f"Out of gas: more than {MAX_JUMPS} jumps")
        if self._jump_count % _JUMPS_PER_CHECK == 0:
            self._clock.check()
