// Runs an example against its simulator on this machine: a full sync, then the changes since.
//   node examples/simulate.mjs stripe
import { spawn } from 'node:child_process'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { LaggingClock, serve } from '@tidemark/simulators'
import { SIMULATORS } from './simulators.mjs'

const folder = fileURLToPath(new URL('.', import.meta.url))
if (process.argv[1] === fileURLToPath(import.meta.url)) process.exit((await simulate(process.argv[2] ?? '')).code)

/** Returns the final simulated account and the exit code of the first failed command. */
export async function simulate(name, store = join(folder, name, '.tidemark/simulated.db')) {
  const example = SIMULATORS[name]
  if (example === undefined) {
    console.error(`Which one? ${Object.keys(SIMULATORS).join(', ')}`)
    return { code: 2 }
  }
  for (const file of [store, `${store}-wal`, `${store}-shm`]) rmSync(file, { force: true })
  const clock = new LaggingClock(3_600_000)
  const vendor = example.createSimulator({ clock, random: { next: Math.random } })
  example.fill(vendor)
  clock.lagMs /= 2
  const server = await serve(vendor)
  const commands = [
    ['run'],
    ...example.syncs.map((sync) => ['run', sync]),
    ...Object.keys(example.databases).map((database) => ['query', `select count(*) as ${database} from ${database}`]),
  ]
  let code = 0
  for (const [number, command] of commands.entries()) {
    if (number === 1) {
      example.change(vendor)
      clock.lagMs = 0
    }
    code ||= await tidemark(command, name, {
      ...process.env,
      ...example.env(server.url),
      TIDEMARK_STORE: `sqlite:${store}`,
    })
  }
  await server.close()
  return { code, vendor, databases: example.databases }
}

function tidemark(command, name, env) {
  console.log(
    `\n$ npx tidemark ${command.map((word) => (word.includes(' ') ? `"${word}"` : word)).join(' ')} --file examples/${name}/worker.ts`,
  )
  const child = spawn(
    process.execPath,
    [join(folder, '../dist/cli/main.js'), ...command, '--file', join(folder, name, 'worker.ts')],
    { stdio: 'inherit', env },
  )
  return new Promise((resolve) => child.once('exit', (code) => resolve(code ?? 1)))
}
