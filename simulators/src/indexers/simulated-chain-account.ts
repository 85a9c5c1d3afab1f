import { randomHex } from '../kit/ids.ts'
import type { SimulatorPorts } from '../kit/simulator.ts'
import type { SimulatedSystem } from '../simulated-systems.ts'
import { AlchemySimulator } from './alchemy-simulator.ts'
import { EtherscanSimulator } from './etherscan-simulator.ts'
import { FakeChain, type TransactionDraft } from './fake-chain.ts'

/** The account that sends and receives. */
export const SIMULATED_ADDRESS = '0x71de00000000000000000000000000000000c0de'

const BLOCKS = 60
const ETHER = 10n ** 18n
const DOLLAR = 10n ** 6n

/**
 * A chain on which one account sends and receives, served by an indexing node and by an explorer, each at its own
 * address.
 */
export class SimulatedChainAccount implements SimulatedSystem {
  readonly #ports: SimulatorPorts
  readonly #chain: FakeChain
  readonly #alchemy: AlchemySimulator
  readonly #etherscan: EtherscanSimulator

  constructor(ports: SimulatorPorts) {
    this.#ports = ports
    this.#chain = new FakeChain(ports)
    this.#alchemy = new AlchemySimulator(ports, this.#chain)
    this.#etherscan = new EtherscanSimulator(ports, this.#chain)
    for (let n = 0; n < BLOCKS; n++) this.write(n)
  }

  handle(request: Request): Promise<Response> {
    return (new URL(request.url).hostname.endsWith('etherscan.io') ? this.#etherscan : this.#alchemy).handle(request)
  }

  write(n: number): void {
    this.#chain.mine([this.#nextTransaction(n)])
  }

  secret(name: string): string | undefined {
    return name.endsWith('_URL') ? 'https://eth-mainnet.g.alchemy.com/v2/simulated' : undefined
  }

  #nextTransaction(n: number): TransactionDraft {
    const other = `0x${randomHex(this.#ports.random, 40)}`
    const [from, to] = n % 3 === 0 ? [SIMULATED_ADDRESS, other] : [other, SIMULATED_ADDRESS]
    if (n % 4 === 0) return { from, to, tokens: [{ from, to, value: BigInt(1 + (n % 50)) * DOLLAR }] }
    return { from, to, value: (BigInt(1 + (n % 9)) * ETHER) / 10n }
  }
}
