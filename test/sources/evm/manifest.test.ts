import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { buildWorker } from '../../../src/config/manifest/manifest.ts'
import { runCycle } from '../../../src/worker/run-cycle.ts'
import { openSqliteStore } from '../../../src/stores/sqlite/store.ts'
import { ACCOUNTS, Anvil } from './anvil.ts'
import { ChainProvider } from './chain-provider.ts'

const [, me] = ACCOUNTS
const SILENT = { debug() {}, info() {}, warn() {}, error() {} }

let chain: Anvil
beforeAll(async () => void (chain = await Anvil.start()))
afterAll(() => chain.stop())

/** The snippet of the guide, with local URLs instead of the vendors. */
function guide(changes: Record<string, string>): string {
  const page = readFileSync(join(import.meta.dirname, '../../../docs/guides/failover.md'), 'utf8')
  let text = /```yaml\n([\s\S]*?)```/.exec(page)![1]!
  for (const [from, to] of Object.entries(changes)) {
    expect(text).toContain(from)
    text = text.replace(from, to)
  }
  return text
}

test('the manifest of the guide reads a chain, continues with another provider, then reads new blocks', async () => {
  const contract = await chain.deployToken()
  const start = Number(await chain.client.getBlockNumber()) + 1
  const send = async (count: number): Promise<void> => {
    for (let n = 0; n < count; n++) {
      await chain.sendToken(contract, me!.address, BigInt(n + 1))
      await chain.mine()
    }
  }
  await send(3)
  const [index, scan] = [
    await ChainProvider.open('alchemy', chain.url),
    await ChainProvider.open('etherscan', chain.url),
  ]
  const folder = mkdtempSync(join(tmpdir(), 'tidemark-evm-'))
  const store = await openSqliteStore({ file: ':memory:' })
  onTestFinished(async () => {
    await store.close()
    for (const front of [index, scan]) await front.close()
    rmSync(folder, { recursive: true })
  })
  const path = join(folder, 'tidemark.yaml')
  writeFileSync(
    path,
    guide({
      'chain_id: 1\n': 'chain_id: 31337\n',
      '18000000': String(start),
      'https://node.example': chain.url,
      '0xd8da6bf26964af9d7eed9e03e53415d37aa96045': me!.address,
      'api_key: "${ETHERSCAN_KEY}", confirmations: 3': `api_key: "\${ETHERSCAN_KEY}", base_url: "${scan.url}/api"`,
    }),
  )
  writeFileSync(join(folder, '.env'), `ALCHEMY_URL=${index.url}\n`)
  const worker = await buildWorker(path, 'tidemark.yaml', {})
  const run = () =>
    runCycle(worker, 'wallet.transfers', { store, log: SILENT, secrets: { ETHERSCAN_KEY: 'key-of-the-explorer' } })
  const tokens = async (): Promise<unknown[]> =>
    (await store.rows({ database: 'wallet.transfers', limit: 100 }))
      .map(({ text }) => (JSON.parse(text) as { value: string }).value)
      .toSorted()

  expect(await run()).toMatchObject({ stopReason: 'complete', error: null })
  expect(await tokens()).toEqual(['1', '2', '3'])
  index.isDown = scan.isDown = true
  await send(2)
  expect(await run()).toMatchObject({
    stopReason: 'complete',
    endReason: expect.stringContaining('switched') as string,
    error: null,
  })
  expect(await tokens()).toEqual(['1', '1', '2', '2', '3'])
})

test.each([
  [
    'no account',
    'providers: [{ kind: rpc, name: node, url: "http://127.0.0.1:1" }]',
    '{ id: a, options: { address: vitalik } }',
    /^tidemark\.yaml:4:\d+: streams\.0\.options\.address: it is the account: 0x and 40 hex digits, in quotes/,
  ],
  [
    'a key written out',
    'providers: [{ kind: etherscan, name: e, api_key: hunter2 }]',
    '{ id: a, options: { address: "0xd8da6bf26964af9d7eed9e03e53415d37aa96045" } }',
    /^tidemark\.yaml:3:\d+: config\.providers\.0\.api_key: it is a secret/,
  ],
  [
    'a node without an address',
    'providers: [{ kind: rpc, name: e }]',
    '{ id: a, options: { address: "0xd8da6bf26964af9d7eed9e03e53415d37aa96045" } }',
    /^tidemark\.yaml:3:\d+: config\.providers\.0: `url` is missing/,
  ],
  [
    'a safety window',
    'providers: [{ kind: rpc, name: node, url: "http://127.0.0.1:1" }]',
    '{ id: a, safety_window: PT5M, options: { address: "0xd8da6bf26964af9d7eed9e03e53415d37aa96045" } }',
    /^tidemark\.yaml:4:35: streams\.0\.safety_window: it is not supported by this connector: `confirmations`/,
  ],
])('a manifest with %s is refused where it says so', async (_, config, stream, words) => {
  const folder = mkdtempSync(join(tmpdir(), 'tidemark-evm-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  writeFileSync(join(folder, 'tidemark.yaml'), `connector: evm\nconfig:\n  ${config}\nstreams: [${stream}]\n`)
  await expect(buildWorker(join(folder, 'tidemark.yaml'), 'tidemark.yaml', {})).rejects.toThrow(words)
})
