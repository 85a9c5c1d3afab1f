import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'

type Json = any

/** A provider in front of a real chain: a plain node, or an index with the API of Alchemy or Etherscan. It can be stopped. */
export class ChainProvider {
  readonly kind: 'alchemy' | 'etherscan' | 'node'
  isDown = false
  /** The maximum number of logs per response. */
  logsMax = Number.POSITIVE_INFINITY
  refused = 0
  onMethod: ((method: string) => Promise<void>) | null = null
  readonly #chain: string
  readonly #server: Server

  private constructor(kind: ChainProvider['kind'], chain: string) {
    this.kind = kind
    this.#chain = chain
    this.#server = createServer((request, response) => {
      let body = ''
      request.on('data', (part: Buffer) => (body += String(part)))
      request.on(
        'end',
        () =>
          void this.#answer(new URL(request.url!, 'http://front'), body).then(
            (answer) => {
              response
                .writeHead(answer.status ?? 200, { 'content-type': 'application/json' })
                .end(JSON.stringify(answer.body))
            },
            (error: unknown) => void response.writeHead(500).end(String(error)),
          ),
      )
    })
  }

  static async open(kind: ChainProvider['kind'], chain: string): Promise<ChainProvider> {
    const front = new ChainProvider(kind, chain)
    await new Promise<void>((resolve) => front.#server.listen(0, '127.0.0.1', resolve))
    return front
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  async #answer(url: URL, body: string): Promise<{ status?: number; body: Json }> {
    if (this.isDown) return { status: 503, body: {} }
    if (this.kind === 'etherscan') return { body: await this.#etherscan(url.searchParams) }
    const { id, method, params } = JSON.parse(body) as { id: number; method: string; params: Json[] }
    await this.onMethod?.(method)
    if (method === 'alchemy_getAssetTransfers' && this.kind === 'alchemy')
      return { body: { jsonrpc: '2.0', id, result: await this.#transfers(params[0]) } }
    const result = await this.#ask(method, params)
    if (method === 'eth_getLogs' && (result as Json[]).length > this.logsMax) {
      this.refused++
      return {
        body: {
          jsonrpc: '2.0',
          id,
          error: { code: -32_005, message: `query returned more than ${this.logsMax} results` },
        },
      }
    }
    return { body: { jsonrpc: '2.0', id, result } }
  }

  async #ask(method: string, params: Json[]): Promise<Json> {
    const response = await fetch(this.#chain, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    })
    return ((await response.json()) as { result: Json }).result
  }

  async #etherscan(query: URLSearchParams): Promise<Json> {
    const action = query.get('action')!
    if (query.get('module') === 'proxy')
      return {
        jsonrpc: '2.0',
        id: 1,
        result: await this.#ask(action, action === 'eth_blockNumber' ? [] : [query.get('tag'), false]),
      }
    const [page, offset] = [Number(query.get('page')), Number(query.get('offset'))]
    const rows =
      action === 'txlist'
        ? await this.#native(Number(query.get('startblock')), Number(query.get('endblock')), query.get('address')!)
        : await this.#logs(query)
    const result = rows.slice((page - 1) * offset, page * offset)
    return result.length === 0
      ? { status: '0', message: 'No transactions found', result: [] }
      : { status: '1', message: 'OK', result }
  }

  async #logs(query: URLSearchParams): Promise<Json[]> {
    const topics = [query.get('topic0'), query.get('topic1'), query.get('topic2')]
    const logs = (await this.#ask('eth_getLogs', [
      {
        fromBlock: hex(query.get('fromBlock')),
        toBlock: hex(query.get('toBlock')),
        topics: topics[2] === null ? topics.slice(0, 2) : topics,
      },
    ])) as Json[]
    const times = new Map<string, string>()
    for (const { blockNumber } of logs)
      if (!times.has(blockNumber))
        times.set(blockNumber, ((await this.#ask('eth_getBlockByNumber', [blockNumber, false])) as Json).timestamp)
    // This provider writes zero as 0x.
    return logs.map((log) => ({
      ...log,
      timeStamp: times.get(log.blockNumber),
      logIndex: log.logIndex === '0x0' ? '0x' : log.logIndex,
    }))
  }

  async #native(from: number, to: number, address: string): Promise<Json[]> {
    const rows: Json[] = []
    for (let number = from; number <= to; number++) {
      const block = (await this.#ask('eth_getBlockByNumber', [hex(number), true])) as Json
      for (const tx of block.transactions as Json[]) {
        if (tx.from !== address && tx.to !== address) continue
        rows.push({
          blockNumber: String(number),
          timeStamp: String(Number(block.timestamp)),
          hash: tx.hash,
          blockHash: block.hash,
          from: tx.from,
          to: tx.to ?? '',
          value: String(BigInt(tx.value)),
          isError: '0',
          txreceipt_status: '1',
        })
      }
    }
    return rows
  }

  async #transfers(asked: Json): Promise<Json> {
    const [from, to] = [Number(asked.fromBlock), Number(asked.toBlock)]
    const isNative = asked.category[0] === 'external'
    const rows: Json[] = []
    if (isNative) {
      for (const row of await this.#native(from, to, asked.fromAddress ?? asked.toAddress)) {
        if (
          row.value === '0' ||
          (asked.fromAddress !== undefined && row.from !== asked.fromAddress) ||
          (asked.toAddress !== undefined && row.to !== asked.toAddress)
        )
          continue
        rows.push({
          blockNum: hex(row.blockNumber),
          uniqueId: `${row.hash}:external`,
          hash: row.hash,
          from: row.from,
          to: row.to,
          rawContract: { value: hex(row.value), address: null },
          metadata: { blockTimestamp: new Date(Number(row.timeStamp) * 1_000).toISOString() },
        })
      }
    } else {
      const pad = (address: string): string => `0x${'0'.repeat(24)}${address.slice(2)}`
      const query = new URLSearchParams({
        fromBlock: String(from),
        toBlock: String(to),
        topic0: '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef',
      })
      if (asked.fromAddress === undefined) query.set('topic2', pad(asked.toAddress))
      else query.set('topic1', pad(asked.fromAddress))
      for (const log of await this.#logs(query)) {
        rows.push({
          blockNum: log.blockNumber,
          uniqueId: `${log.transactionHash}:log:${Number(log.logIndex === '0x' ? 0 : log.logIndex)}`,
          hash: log.transactionHash,
          from: `0x${log.topics[1].slice(26)}`,
          to: `0x${log.topics[2].slice(26)}`,
          rawContract: { value: log.data, address: log.address },
          metadata: { blockTimestamp: new Date(Number(log.timeStamp) * 1_000).toISOString() },
        })
      }
    }
    const at = Number(asked.pageKey ?? 0)
    const size = Number(asked.maxCount)
    return { transfers: rows.slice(at, at + size), ...(at + size < rows.length && { pageKey: String(at + size) }) }
  }
}

function hex(value: Json): string {
  return `0x${BigInt(value).toString(16)}`
}
