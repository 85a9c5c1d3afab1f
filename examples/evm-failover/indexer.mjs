import { createServer } from 'node:http'

/** Starts an index of the chain: paged `alchemy_getAssetTransfers` for native transfers. Other methods go to a node. */
export async function startIndexer({ call }) {
  let answered = 0
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const part of request) body += part
    const { id, method, params } = JSON.parse(body)
    const result = method === 'alchemy_getAssetTransfers' ? await transfers(params[0]) : await call(method, ...params)
    answered++
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', id, result }))
  })
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${server.address().port}/v2/demo`,
    get answered() {
      return answered
    },
    kill() {
      server.closeAllConnections()
      server.close()
    },
  }

  async function transfers({ fromBlock, toBlock, fromAddress, toAddress, pageKey, maxCount }) {
    const found = []
    for (let number = Number(fromBlock); number <= Number(toBlock); number++) {
      const block = await call('eth_getBlockByNumber', `0x${number.toString(16)}`, true)
      for (const { hash, from, to, value } of block.transactions) {
        if ((fromAddress !== undefined && from !== fromAddress) || (toAddress !== undefined && to !== toAddress))
          continue
        found.push({
          blockNum: block.number,
          uniqueId: `${hash}:external`,
          hash,
          from,
          to,
          rawContract: { value, address: null },
          metadata: { blockTimestamp: new Date(Number(block.timestamp) * 1_000).toISOString() },
        })
      }
    }
    const at = Number(pageKey ?? 0)
    const next = at + Number(maxCount)
    return { transfers: found.slice(at, next), ...(next < found.length && { pageKey: String(next) }) }
  }
}
