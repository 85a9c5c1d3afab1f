import { SyncError } from '../../contract/index.ts'
import { failover, type Failover } from '../../strategies/index.ts'
import type { ChainProviderFactory } from './chain-provider.ts'
import { createReorgRepair } from './reorg-repair.ts'
import { transferOperation, OPERATIONS, type EvmOperation, type Transfer } from './transfer.ts'

export { alchemy, type AlchemyOptions } from './alchemy.ts'
export { etherscan, type EtherscanOptions } from './etherscan.ts'
export { rpc, type RpcOptions } from './rpc.ts'
export type { ChainProvider, ChainProviderFactory } from './chain-provider.ts'
export type { EvmOperation, Transfer } from './transfer.ts'

/** Options of `evm`. */
export interface EvmOptions {
  /** The account whose transfers are read. */
  readonly address: string
  /** In order of preference, unless their health differs. */
  readonly providers: readonly ChainProviderFactory[]
  /** The default is both. */
  readonly operations?: readonly EvmOperation[]
  readonly preferred?: string
  /** The id of the chain. Providers of another chain are rejected. */
  readonly chainId?: number
  readonly startBlock?: number
  /** The number of newest blocks that are not read. 0 reads to the head and repairs reorganisations. */
  readonly confirmations?: number
  /** The number of newest blocks that a reorganisation may replace. */
  readonly depth?: number
  /** The deadline of one provider for a page. */
  readonly deadlineMs?: number
}

/** The transfers of one account. Pass it to `worker.sync`. */
export interface EvmStream {
  readonly mode: 'incremental'
  readonly execute: Failover<Transfer>
}

/**
 * Reads the transfers of an account on an EVM chain, with failover between providers:
 * `worker.sync('transfers', { database, ...evm({ address, providers: [rpc({ name: 'node', url }), …] }).transfers })`.
 */
export function evm({
  address,
  providers: factories,
  operations = OPERATIONS,
  startBlock = 0,
  confirmations = 0,
  depth = 12,
  chainId,
  preferred,
  deadlineMs,
}: EvmOptions): { readonly transfers: EvmStream } {
  if (!/^0x[\da-f]{40}$/i.test(address))
    throw new SyncError('SYNC_INVALID', 'evm: `address` is not a valid address. Write 0x and 40 hexadecimal digits.')
  const providers = factories.map((createProvider) =>
    createProvider({
      address: address.toLowerCase(),
      startBlock,
      confirmations,
      reorgDepth: depth,
      ...(chainId !== undefined && { chainId }),
    }),
  )
  const execute = failover<Transfer>({
    providers,
    operations: Object.fromEntries(operations.map((name) => [name, transferOperation])),
    repair: createReorgRepair(providers, depth),
    ...(preferred !== undefined && { preferred }),
    ...(deadlineMs !== undefined && { deadlineMs }),
  })
  return { transfers: { mode: 'incremental', execute } }
}
