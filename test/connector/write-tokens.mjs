// Adds one to the number in the tokens, as often as its argument says; or crashes, or is stopped, before its file is renamed.
import { once } from 'node:events'
import fs from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'

const { dist, folder, writes, die, wait } = JSON.parse(process.argv[2])
const { link } = fs
fs.link = async (from, to) => {
  if (die === 'before') process.kill(process.pid, 'SIGKILL')
  if (wait) {
    process.send('here')
    await once(process, 'message')
  }
  await link(from, to)
  if (die === 'after') process.kill(process.pid, 'SIGKILL')
}
syncBuiltinESMExports()

const { fileTokens } = await import(`${dist}/connector/index.js`)
const tokens = fileTokens({ folder, key: 'k' })('a')
for (let done = 0; done < writes;) {
  const stored = await tokens.read()
  const written = await tokens.write(stored?.version ?? 0, {
    accessToken: String(Number(stored?.accessToken ?? 0) + 1),
    refreshToken: 'refresh-xyz',
    renewAt: 1,
    claimedUntil: null,
  })
  if (written) done++
  // A value prepared before the others wrote must not count; 9 reports that it did not.
  else if (wait) process.exit(9)
}
process.exit(0)
