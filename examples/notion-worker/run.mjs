import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startDesk } from './server.mjs'

/** The complete example: a help desk, a first run, some changes, a second run. */
const command = process.env.TIDEMARK_COMMAND ?? join(import.meta.dirname, '../../dist/cli/main.js')
const folder = mkdtempSync(join(tmpdir(), 'tidemark-example-'))
const desk = await startDesk()

try {
  await tidemark('run')
  await tidemark(
    'query',
    'select t._key, t.Subject, t.Status, t.Tags, t.Due, c.Name as customer from tickets t join customers c on c._key = t.Customer ->> 0 order by t.Due limit 4',
  )
  desk.put(2, 'Solved')
  desk.put(26, 'Open')
  desk.remove(1)
  console.log('\n# changes at the help desk: T2 is solved, T26 is new, T1 is deleted')
  await tidemark('run', 'ticketsDelta')
  await tidemark('query', "select _key, Status from tickets where _key in ('T1', 'T2', 'T26')")
  await tidemark('status')
} finally {
  desk.close()
  rmSync(folder, { recursive: true, force: true })
}

function tidemark(...args) {
  console.log(`\n$ npx tidemark ${args.map((arg) => (arg.includes(' ') ? `"${arg}"` : arg)).join(' ')}`)
  const store = `sqlite:${join(folder, 'tidemark.db')}`
  const running = spawn(
    process.execPath,
    [command, ...args, '--file', join(import.meta.dirname, 'worker.ts'), '--store', store],
    {
      stdio: ['ignore', 'inherit', 'inherit'],
      env: { ...process.env, DESK_URL: desk.url },
    },
  )
  return new Promise((resolve, reject) => {
    running.once('close', (code) =>
      code === 0 ? resolve() : reject(new Error(`tidemark ${args[0]} ended with ${code}`)),
    )
  })
}
