import type { JsonValue, SyncContext } from '../../contract/index.ts'
import { pagedProvider, type FetchRequest, type ProviderPage } from '../../strategies/index.ts'
import type { Auth } from '../kit/auth.ts'
import { isObject } from '../kit/judge.ts'
import { moved, steady, through, withHashes, type ChainReader, type Hashes, type ReaderOptions } from './chain.ts'
import { JsonRpc, TooMuch, type Header, type NodeUrl } from './json-rpc.ts'
import { addressOf, amountOf, hashOf, hexOf, inOrder, malformed, numberOf, topicOf, transferInLog, TRANSFER_TOPIC, type Transfer } from './transfer.ts'

export interface RpcOptions {
  readonly name: string
  readonly url: NodeUrl
  readonly auth?: Auth
  /** Blocks a page may cover: of logs, which a node finds, and of whole blocks, which have to be fetched one by one. */
  readonly logBlocksMax?: number
  readonly wholeBlocksMax?: number
  readonly confirmations?: number
}

/** Any node of the chain: token transfers from its logs, native ones from whole blocks. */
export function rpc(options: RpcOptions): ChainReader {
  return (reader) => {
    const { name, url, auth, logBlocksMax = 2_000, wholeBlocksMax = 25, confirmations = reader.confirmations } = options
    const node = new Node(new JsonRpc(url, auth), { ...reader, name, confirmations })
    const spans = { token: logBlocksMax, native: wholeBlocksMax }
    return {
      ...pagedProvider<Transfer>({
        name, supports: ['blockNumber'], prefers: 'blockNumber',
        fetchPage: (request, context) => node.page(request, spans[request.operation as keyof typeof spans], context),
      }),
      hashAt: async (block, context) => (await node.rpc.block(block, context))?.hash ?? null,
    }
  }
}

class Node {
  readonly rpc: JsonRpc
  readonly #options: ReaderOptions

  constructor(json: JsonRpc, options: ReaderOptions) {
    this.rpc = json
    this.#options = options
  }

  async page({ operation, cursor, own }: FetchRequest, spanMax: number, context: SyncContext): Promise<ProviderPage<Transfer>> {
    const { startBlock, confirmations, chainId } = this.#options
    const head = await this.rpc.head(context, own === undefined ? chainId : undefined) - confirmations
    // The window of another provider may reach before the beginning.
    const from = Math.max(startBlock, cursor === undefined ? 0 : Number(cursor.value))
    if (from > head) return { items: [], through: through(Math.max(0, head + 1)), end: true }
    for (let span = Math.min(spanMax, spanIn(own?.metadata?.custom) ?? spanMax); ; span = Math.ceil(span / 2)) {
      const to = Math.min(from + span - 1, head)
      try {
        const { items, hashes } = operation === 'native' ? await this.#native(from, to, head, context) : await this.#token(from, to, head, context)
        // What was too much for a while may not be so later.
        return { items, through: through(to + 1), end: to === head, custom: withHashes(from, hashes, { span: Math.min(spanMax, span * 2) }) }
      } catch (error) {
        if (!(error instanceof TooMuch) || from === to) throw error
      }
    }
  }

  async #token(from: number, to: number, head: number, context: SyncContext): Promise<{ items: Transfer[]; hashes: Hashes }> {
    const { address, depth } = this.#options
    const { value, hashes } = await steady({ from, to, head, depth }, async (block) => (await this.rpc.block(block, context))?.hash ?? null, async () => {
      const range = { fromBlock: hexOf(from), toBlock: hexOf(to) }
      const sent = await this.#logs({ ...range, topics: [TRANSFER_TOPIC, topicOf(address)] }, context)
      const received = await this.#logs({ ...range, topics: [TRANSFER_TOPIC, null, topicOf(address)] }, context)
      const headers = await this.#headersOf([...sent, ...received], context)
      const transfers = [...sent, ...received].flatMap((log) => transferInLog(log, (block) => headers.get(block)!.at) ?? [])
      return new Map(transfers.map((transfer) => [`${transfer.block} ${transfer.logIndex}`, transfer]))
    })
    return { items: inOrder([...value.values()]), hashes }
  }

  async #logs(filter: Record<string, JsonValue>, context: SyncContext): Promise<JsonValue[]> {
    const logs = await this.rpc.call('eth_getLogs', [filter], context)
    if (!Array.isArray(logs)) throw malformed('list of logs')
    return logs
  }

  /** The blocks that logs are in, which must be the blocks they say they are in. */
  async #headersOf(logs: readonly JsonValue[], context: SyncContext): Promise<Map<number, Header>> {
    const headers = new Map<number, Header>()
    for (const log of logs) {
      if (!isObject(log)) throw malformed('log')
      const number = numberOf(log.blockNumber, 'block number')
      const header = headers.get(number) ?? await this.rpc.block(number, context)
      if (header === null || header.hash !== hashOf(log.blockHash, 'block hash')) throw moved()
      headers.set(number, header)
    }
    return headers
  }

  async #native(from: number, to: number, head: number, context: SyncContext): Promise<{ items: Transfer[]; hashes: Hashes }> {
    const { address, depth } = this.#options
    const items: Transfer[] = []
    const hashes: Array<[number, string]> = []
    let parent: string | undefined
    const before = from > 0 && from - 1 > head - depth ? await this.rpc.block(from - 1, context) : null
    if (before !== null) hashes.push([before.number, parent = before.hash])
    for (let number = from; number <= to; number++) {
      const block = await this.rpc.block(number, context, true)
      if (block === null || (parent !== undefined && block.parentHash !== parent)) throw moved()
      parent = block.hash
      if (number > head - depth) hashes.push([number, block.hash])
      for (const transaction of block.transactions) {
        const transfer = nativeOf(transaction, block)
        if (transfer !== null && (transfer.from === address || transfer.to === address) && await this.#succeeded(transfer, block, context)) items.push(transfer)
      }
    }
    return { items, hashes }
  }

  async #succeeded({ hash }: Transfer, block: Header, context: SyncContext): Promise<boolean> {
    const receipt = await this.rpc.call('eth_getTransactionReceipt', [hash], context)
    if (!isObject(receipt) || receipt.blockHash === undefined || hashOf(receipt.blockHash, 'block hash') !== block.hash) throw moved()
    return numberOf(receipt.status, 'status') === 1
  }
}

/** Null where nothing of value was moved. */
function nativeOf(transaction: JsonValue, block: Header): Transfer | null {
  if (!isObject(transaction)) throw malformed('transaction')
  const value = amountOf(transaction.value, 'amount')
  if (value === '0') return null
  const { to } = transaction
  return {
    kind: 'native', hash: hashOf(transaction.hash, 'transaction hash'), logIndex: null, block: block.number, at: block.at,
    from: addressOf(transaction.from, 'sender'), to: to === null || to === undefined ? null : addressOf(to, 'recipient'), value, contract: null,
  }
}

function spanIn(custom: JsonValue | undefined): number | null {
  return isObject(custom) && typeof custom.span === 'number' && custom.span >= 1 ? custom.span : null
}
