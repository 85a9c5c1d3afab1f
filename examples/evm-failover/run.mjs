import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { openStore, runCycle } from 'tidemark'
import { alchemy, evm, rpc } from 'tidemark/sources/evm'
import { startChain } from './chain.mjs'
import { startIndexer } from './indexer.mjs'

const chain = await startChain()
const index = await startIndexer(chain)
const folder = mkdtempSync(join(tmpdir(), 'tidemark-evm-'))
const url = `sqlite:${join(folder, 'wallet.db')}`
const store = await openStore(url)
const say = (text) => console.log(text)

const { transfers } = evm({
  address: chain.account,
  operations: ['native'],
  depth: 6,
  preferred: 'index',
  providers: [alchemy({ name: 'index', url: index.url, countMax: 10 }), rpc({ name: 'node', url: chain.url })],
})
/** Prints warnings as they happen. */
const log = {
  debug() {},
  info() {},
  error() {},
  warn: (message, { provider, from, to, code } = {}) =>
    say(
      `  ! ${message}${provider ? `: ${provider}` : ''}${code ? ` (${code})` : ''}${from ? `: ${from} → ${to}` : ''}`,
    ),
}
const cycle = (onProgress = () => {}) =>
  runCycle({
    worker: 'wallet',
    store,
    log,
    onProgress,
    sync: { name: 'transfers', database: 'transfers', ...transfers },
  })

try {
  say(`A chain at ${chain.url}; 60 payments to ${chain.account}.`)
  await chain.pay(60)

  say('\nFirst cycle. The index is killed after its second page:')
  const first = await cycle((progress) => {
    if (progress.kind !== 'landed') return
    say(`  page ${progress.page}: ${progress.counts.created} transfers`)
    if (progress.page === 2) index.kill()
  })
  say(
    `  ${first.stopReason} (${first.endReason ?? 'no switch'}), ${await count()} of 60 transfers landed, ${(await store.changes({ after: 0, limit: 1_000 })).length} entries in the feed`,
  )

  say('\ntidemark status:')
  say(status())

  say('\nThe last 3 blocks are replaced, and 2 more payments follow:')
  await chain.call('anvil_reorg', 3, [])
  await chain.pay(2)
  const second = await cycle()
  say(
    `  ${second.stopReason}: ${second.counts.deleted} transfers were in blocks that are gone, ${second.counts.created} are new, ${await count()} are there`,
  )
} finally {
  await store.close()
  chain.stop()
  rmSync(folder, { recursive: true, force: true })
}

/** The output of `tidemark status`. */
function status() {
  const cli = join(dirname(fileURLToPath(import.meta.url)), '../../dist/cli/main.js')
  return spawnSync(process.execPath, [cli, 'status', '--all', '--store', url], { encoding: 'utf8' }).stdout.trim()
}

async function count() {
  return (await store.rows({ database: 'transfers', limit: 1_000 })).length
}
