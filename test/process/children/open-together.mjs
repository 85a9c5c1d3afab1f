// Opens file after file at given times, as other processes do: it has the event loop to itself, so the times are exact.
import { input, report } from './child-runtime.mjs'

const { Connection } = await import(`${input.dist}/stores/sqlite/connection.js`)
for (const [index, file] of input.files.entries()) {
  while (Date.now() < input.at + index * input.everyMs);
  new Connection({ file }).close()
}
report('opened', { files: input.files.length })
process.exit(0)
