import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { setTimeout as sleep } from 'node:timers/promises'
import { serve, XSimulator } from '@tidemark/simulators'

/**
 * Runs the worker in this folder against a simulated X on this machine:
 *
 *   node demo.mjs
 */
const here = dirname(fileURLToPath(import.meta.url))
const command = join(dirname(fileURLToPath(import.meta.resolve('tidemark/package.json'))), 'dist/cli/main.js')
const folder = mkdtempSync(join(tmpdir(), 'tidemark-bookmarks-'))

const clock = { now: () => Date.now(), sleep: (ms, signal) => sleep(ms, undefined, { signal }) }
const x = new XSimulator({ clock, random: { next: Math.random } }, { token: 'let-me-in' })
const server = await serve(x)
const bookmark = (count) => Array.from({ length: count }, (_, n) => x.create('bookmark', { text: `post ${n + 1}` }))

try {
  say('An account with 400 bookmarks. The first run reads the newest page, then the history before it.')
  const ids = bookmark(400)
  await tidemark('run', 'bookmarks')

  say('Five new bookmarks, and the newest one is bookmarked again: one page, up to the known items.')
  bookmark(5)
  x.remove('bookmark', ids.at(-1))
  x.bookmarkAgain(ids.at(-1))
  await tidemark('run', 'bookmarks')
  await tidemark('status')

  say('Three bookmarks are removed. Forward passes do not find removals; the daily full listing does.')
  for (const at of [10, 200, 390]) x.remove('bookmark', ids[at])
  await tidemark('run', 'bookmarks-backfill')
  await tidemark('query', 'select count(*) as bookmarks from bookmarks')
} finally {
  await server.close()
  rmSync(folder, { recursive: true, force: true })
}

function say(text) {
  console.log(`\n# ${text}`)
}

async function tidemark(...args) {
  console.log(`\n$ tidemark ${args.join(' ')}`)
  const env = {
    ...process.env,
    X_URL: server.url,
    X_USER_ID: x.user.id,
    X_TOKEN: 'let-me-in',
    TIDEMARK_STORE: `sqlite:${join(folder, 'demo.db')}`,
  }
  const child = spawn(process.execPath, [command, ...args, '--file', join(here, 'worker.mjs')], {
    env,
    stdio: 'inherit',
  })
  const code = await new Promise((resolve) => child.once('close', resolve))
  if (code !== 0) throw new Error(`tidemark ${args.join(' ')} ended with ${code}`)
}
