// Reads the feed and records processed changes until it kills itself at the given step.
import { appendFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

const [folder, dist, url, key, dieAt] = process.argv.slice(2)
const { changeKey, changes } = await import(pathToFileURL(join(dist, 'client/index.js')).href)
const { fileCheckpoint } = await import(pathToFileURL(join(dist, 'client/node/index.js')).href)
let moment = 0
const live = () => {
  if (++moment === Number(dieAt)) process.kill(process.pid, 'SIGKILL')
}
const file = fileCheckpoint(join(folder, 'checkpoint.json'))
const checkpoint = {
  load: () => file.load(),
  async save(position) {
    live()
    await file.save(position)
    live()
  },
}
for await (const change of changes({ url, key, checkpoint, follow: false, pageSize: 4 })) {
  live()
  appendFileSync(
    join(folder, 'done.ndjson'),
    `${JSON.stringify([changeKey(change), change.action, change.resourceId, change.snapshot])}\n`,
  )
  live()
}
